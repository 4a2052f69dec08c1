//! The driver over the published client 0.0.74.

extern crate iggy_0_0_74 as iggy;

#[path = "../crossing.rs"]
mod crossing;
#[path = "../driver.rs"]
mod driver;
#[path = "../scenario.rs"]
mod scenario;

fn main() {
    driver::run();
}
