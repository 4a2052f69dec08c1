//! The driver over the published client 0.0.60.

extern crate iggy_0_0_60 as iggy;

#[path = "../crossing.rs"]
mod crossing;
#[path = "../driver.rs"]
mod driver;
#[path = "../scenario.rs"]
mod scenario;

fn main() {
    driver::run();
}
