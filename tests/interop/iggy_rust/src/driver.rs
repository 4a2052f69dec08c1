//! What the command line asks for, and how a step is timed and reported.

use crate::{crossing, scenario};
use iggy::client::Client;
use iggy::error::Error;
use iggy::tcp::client::TcpClient;
use std::fmt::Debug;
use std::future::Future;
use std::process::exit;
use std::time::Duration;
use tokio::time::timeout;

const USAGE: &str = "usage: HOST:PORT scenario | write STREAM TOPIC COUNT | read STREAM TOPIC";

/// One call of the client. A refusal is printed by its number; silence for five seconds, or a
/// connection that broke, ends the run.
pub async fn step<T: Debug>(name: &str, call: impl Future<Output = Result<T, Error>>) -> Option<T> {
    match timeout(Duration::from_secs(5), call).await {
        Err(_) => {
            println!("{name}: silence");
            exit(1);
        }
        Ok(Err(Error::InvalidResponse(number))) => {
            println!("{name}: error {number}");
            None
        }
        Ok(Err(error)) => {
            println!("{name}: {error}");
            exit(1);
        }
        Ok(Ok(value)) => Some(value),
    }
}

/// A call that answers nothing but success.
pub async fn done(name: &str, call: impl Future<Output = Result<(), Error>>) {
    if step(name, call).await.is_some() {
        println!("{name}: done");
    }
}

#[tokio::main(flavor = "current_thread")]
pub async fn run() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut client = TcpClient::new(words.first().expect(USAGE)).expect("an address");
    client.connect().await.expect("nobody listens");
    match &words[1..] {
        ["scenario"] => scenario::play(&client).await,
        ["write", stream, topic, count] => {
            crossing::write(&client, stream, topic, count.parse().expect(USAGE)).await;
        }
        ["read", stream, topic] => crossing::read(&client, stream, topic).await,
        _ => panic!("{USAGE}"),
    }
    client.disconnect().await.expect("to hang up");
}
