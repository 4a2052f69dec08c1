//! Every command that a client of the generation has, well and wrongly used, a line for each step.

use crate::driver::{done, step};
use bytes::Bytes;
use iggy::client::{
    ConsumerOffsetClient, MessageClient, PartitionClient, StreamClient, SystemClient, TopicClient,
};
use iggy::consumer::Consumer;
use iggy::consumer_offsets::get_consumer_offset::GetConsumerOffset;
use iggy::consumer_offsets::store_consumer_offset::StoreConsumerOffset;
use iggy::identifier::Identifier;
use iggy::messages::poll_messages::{PollMessages, PollingStrategy};
use iggy::messages::send_messages::{Message, Partitioning, SendMessages};
use iggy::models::header::{HeaderKey, HeaderValue};
use iggy::models::messages::PolledMessages;
use iggy::partitions::create_partitions::CreatePartitions;
use iggy::partitions::delete_partitions::DeletePartitions;
use iggy::streams::create_stream::CreateStream;
use iggy::streams::delete_stream::DeleteStream;
use iggy::streams::get_stream::GetStream;
use iggy::streams::get_streams::GetStreams;
use iggy::system::get_me::GetMe;
use iggy::system::ping::Ping;
use iggy::tcp::client::TcpClient;
use iggy::topics::create_topic::CreateTopic;
use iggy::topics::delete_topic::DeleteTopic;
use iggy::topics::get_topic::GetTopic;
use iggy::topics::get_topics::GetTopics;
use std::collections::HashMap;

fn stream() -> Identifier {
    Identifier::named("dev").unwrap()
}

fn topic() -> Identifier {
    Identifier::numeric(1).unwrap()
}

fn text(id: u128, value: &str) -> Message {
    Message::new(Some(id), Bytes::from(value.to_string()), None)
}

fn send(partitioning: Partitioning, messages: Vec<Message>) -> SendMessages {
    SendMessages {
        stream_id: stream(),
        topic_id: topic(),
        partitioning,
        messages,
    }
}

fn poll(partition: u32, strategy: PollingStrategy, count: u32, auto_commit: bool) -> PollMessages {
    PollMessages {
        consumer: Consumer::new(7),
        stream_id: stream(),
        topic_id: topic(),
        partition_id: Some(partition),
        strategy,
        count,
        auto_commit,
    }
}

fn show(name: &str, polled: PolledMessages) {
    let seen: Vec<String> = polled
        .messages
        .iter()
        .map(|message| {
            let id = if message.id < 1000 {
                message.id.to_string()
            } else {
                "made".to_string()
            };
            let mut headers: Vec<String> = message
                .headers
                .iter()
                .flatten()
                .map(|(key, value)| format!("{}={:?}:{:?}", key.as_str(), value.kind, value.value))
                .collect();
            headers.sort();
            let payload = String::from_utf8_lossy(&message.payload);
            format!(
                "{}|{}|{}|{}|{}",
                message.offset,
                id,
                message.checksum,
                headers.join(","),
                payload
            )
        })
        .collect();
    println!(
        "{name}: p{} at {} [{}]",
        polled.partition_id,
        polled.current_offset,
        seen.join("; ")
    );
}

async fn polled(name: &str, client: &TcpClient, command: PollMessages) {
    if let Some(found) = step(name, client.poll_messages(&command)).await {
        show(name, found);
    }
}

/// Plays it from the first ping to the last deletion.
pub async fn play(c: &TcpClient) {
    done("ping", c.ping(&Ping {})).await;
    let create = CreateStream {
        stream_id: 1,
        name: "dev".to_string(),
    };
    done("create stream", c.create_stream(&create)).await;
    done("create stream again", c.create_stream(&create)).await;
    let same_name = CreateStream {
        stream_id: 2,
        name: "dev".to_string(),
    };
    done("create stream of that name", c.create_stream(&same_name)).await;
    let odd = CreateStream {
        stream_id: 3,
        name: "no/slash".to_string(),
    };
    done("create stream of odd name", c.create_stream(&odd)).await;
    let create = CreateTopic {
        stream_id: stream(),
        topic_id: 1,
        partitions_count: 2,
        message_expiry: Some(3600),
        name: "My  Top".to_string(),
    };
    done("create topic", c.create_topic(&create)).await;
    done("create topic again", c.create_topic(&create)).await;
    let more = CreatePartitions {
        stream_id: stream(),
        topic_id: topic(),
        partitions_count: 1,
    };
    done("create partitions", c.create_partitions(&more)).await;

    let two = vec![text(5, "hello"), text(6, "world, again")];
    done(
        "send to partition 1",
        c.send_messages(&mut send(Partitioning::partition_id(1), two)),
    )
    .await;
    let mut headers = HashMap::new();
    headers.insert(
        HeaderKey::new("Name").unwrap(),
        HeaderValue {
            kind: iggy::models::header::HeaderKind::String,
            value: b"x".to_vec(),
        },
    );
    headers.insert(
        HeaderKey::new("n").unwrap(),
        HeaderValue::from_uint32(7).unwrap(),
    );
    headers.insert(
        HeaderKey::new("wide").unwrap(),
        HeaderValue::from_int128(-1).unwrap(),
    );
    headers.insert(
        HeaderKey::new("yes").unwrap(),
        HeaderValue::from_bool(true).unwrap(),
    );
    headers.insert(
        HeaderKey::new("pi").unwrap(),
        HeaderValue::from_float64(3.5).unwrap(),
    );
    let typed = Message::new(Some(9), Bytes::from_static(b"typed"), Some(headers));
    let key = Partitioning::messages_key_u64(7);
    done("send by key", c.send_messages(&mut send(key, vec![typed]))).await;
    done(
        "send balanced",
        c.send_messages(&mut send(Partitioning::balanced(), vec![text(10, "b")])),
    )
    .await;
    let made = Message::new(None, Bytes::from_static(b"no id"), None);
    done(
        "send without id",
        c.send_messages(&mut send(Partitioning::partition_id(1), vec![made])),
    )
    .await;
    let lost = send(Partitioning::partition_id(9), vec![text(1, "x")]);
    done("send to partition 9", c.send_messages(&mut { lost })).await;
    done(
        "send nothing",
        c.send_messages(&mut send(Partitioning::balanced(), vec![])),
    )
    .await;
    let empty = send(
        Partitioning::balanced(),
        vec![Message::new(None, Bytes::new(), None)],
    );
    done("send an empty payload", c.send_messages(&mut { empty })).await;

    polled(
        "poll first",
        c,
        poll(1, PollingStrategy::first(), 10, false),
    )
    .await;
    polled(
        "poll offset 1",
        c,
        poll(1, PollingStrategy::offset(1), 10, false),
    )
    .await;
    polled("poll last 1", c, poll(1, PollingStrategy::last(), 1, false)).await;
    polled(
        "poll timestamp 1",
        c,
        poll(1, PollingStrategy::timestamp(1), 2, false),
    )
    .await;
    polled(
        "poll beyond",
        c,
        poll(1, PollingStrategy::offset(99), 2, false),
    )
    .await;
    polled("poll next 2", c, poll(1, PollingStrategy::next(), 2, true)).await;
    polled(
        "poll next again",
        c,
        poll(1, PollingStrategy::next(), 9, true),
    )
    .await;
    polled(
        "poll next at end",
        c,
        poll(1, PollingStrategy::next(), 9, true),
    )
    .await;
    polled("poll keyed", c, poll(3, PollingStrategy::first(), 9, false)).await;
    polled(
        "poll partition 9",
        c,
        poll(9, PollingStrategy::first(), 9, false),
    )
    .await;
    polled(
        "poll nothing",
        c,
        poll(1, PollingStrategy::first(), 0, false),
    )
    .await;

    let offset = |consumer| GetConsumerOffset {
        consumer: Consumer::new(consumer),
        stream_id: stream(),
        topic_id: topic(),
        partition_id: Some(1),
    };
    for (name, consumer) in [("offset of 7", 7), ("offset never stored", 8)] {
        if let Some(found) = step(name, c.get_consumer_offset(&offset(consumer))).await {
            println!(
                "{name}: p{} {} of {}",
                found.partition_id, found.stored_offset, found.current_offset
            );
        }
    }
    let store = |value| StoreConsumerOffset {
        consumer: Consumer::new(7),
        stream_id: stream(),
        topic_id: topic(),
        partition_id: Some(1),
        offset: value,
    };
    done("store offset 0", c.store_consumer_offset(&store(0))).await;
    polled(
        "poll next after 0",
        c,
        poll(1, PollingStrategy::next(), 1, false),
    )
    .await;
    done("store offset beyond", c.store_consumer_offset(&store(99))).await;

    if let Some(found) = step(
        "get topic",
        c.get_topic(&GetTopic {
            stream_id: stream(),
            topic_id: topic(),
        }),
    )
    .await
    {
        let ends: Vec<String> = found
            .partitions
            .iter()
            .map(|p| format!("{}:{}:{}", p.id, p.current_offset, p.messages_count))
            .collect();
        println!(
            "get topic: {} {} expiry {:?} messages {} partitions {}",
            found.id,
            found.name,
            found.message_expiry,
            found.messages_count,
            ends.join(" ")
        );
    }
    if let Some(found) = step(
        "get topics",
        c.get_topics(&GetTopics {
            stream_id: stream(),
        }),
    )
    .await
    {
        println!(
            "get topics: {}",
            found
                .iter()
                .map(|t| t.name.clone())
                .collect::<Vec<_>>()
                .join(" ")
        );
    }
    if let Some(found) = step(
        "get stream",
        c.get_stream(&GetStream {
            stream_id: stream(),
        }),
    )
    .await
    {
        println!(
            "get stream: {} {} topics {} messages {}",
            found.id,
            found.name,
            found.topics.len(),
            found.messages_count
        );
    }
    if let Some(found) = step("get streams", c.get_streams(&GetStreams {})).await {
        let dev: Vec<_> = found
            .iter()
            .filter(|s| s.id == 1)
            .map(|s| s.name.clone())
            .collect();
        println!("get streams: {}", dev.join(" "));
    }
    if step("get me", c.get_me(&GetMe {})).await.is_some() {
        println!("get me: done");
    }
    let missing = GetStream {
        stream_id: Identifier::numeric(77).unwrap(),
    };
    step("get stream 77", c.get_stream(&missing)).await;
    let missing = GetTopic {
        stream_id: stream(),
        topic_id: Identifier::named("none").unwrap(),
    };
    step("get topic none", c.get_topic(&missing)).await;

    let fewer = DeletePartitions {
        stream_id: stream(),
        topic_id: topic(),
        partitions_count: 1,
    };
    done("delete partitions", c.delete_partitions(&fewer)).await;
    done(
        "delete topic",
        c.delete_topic(&DeleteTopic {
            stream_id: stream(),
            topic_id: topic(),
        }),
    )
    .await;
    done(
        "delete stream",
        c.delete_stream(&DeleteStream {
            stream_id: stream(),
        }),
    )
    .await;
    done(
        "delete stream again",
        c.delete_stream(&DeleteStream {
            stream_id: stream(),
        }),
    )
    .await;
}
