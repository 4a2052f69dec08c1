// The end-to-end tests of the Cursus broker of December 2025, built as a test dependency.
module dragoman.invalid/cursus_e2e

go 1.25.0

require github.com/downfa11-org/go-broker v0.1.0

require (
	github.com/google/uuid v1.6.0 // indirect
	github.com/klauspost/compress v1.18.0 // indirect
	github.com/pierrec/lz4/v4 v4.1.22 // indirect
	github.com/segmentio/kafka-go v0.4.49 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)
