// Package cursus_e2e names the end-to-end tests of the Cursus broker of December 2025, so that they
// can be compiled as they were published: `make interop-build`.
package cursus_e2e

import _ "github.com/downfa11-org/go-broker/test/e2e"
