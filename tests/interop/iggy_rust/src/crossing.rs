//! Writes numbered records for other dialects to read, and reads what other dialects wrote.

use crate::driver::{done, step};
use bytes::Bytes;
use iggy::client::{MessageClient, StreamClient, TopicClient};
use iggy::consumer::Consumer;
use iggy::identifier::Identifier;
use iggy::messages::poll_messages::{PollMessages, PollingStrategy};
use iggy::messages::send_messages::{Message, Partitioning, SendMessages};
use iggy::streams::create_stream::CreateStream;
use iggy::tcp::client::TcpClient;
use iggy::topics::create_topic::CreateTopic;
use iggy::topics::get_topic::GetTopic;

const BATCH: u32 = 100;
const PARTITIONS: u32 = 3;

/// Makes the stream and the topic, then sends `record-0`, `record-1`, ... in batches, one
/// partition after another. The stream's number is its topic's count of records, which is free.
pub async fn write(client: &TcpClient, stream: &str, topic: &str, count: u32) {
    let create = CreateStream {
        stream_id: count,
        name: stream.to_string(),
    };
    done("create stream", client.create_stream(&create)).await;
    let create = CreateTopic {
        stream_id: Identifier::named(stream).unwrap(),
        topic_id: 1,
        partitions_count: PARTITIONS,
        message_expiry: None,
        name: topic.to_string(),
    };
    done("create topic", client.create_topic(&create)).await;
    for first in (0..count).step_by(BATCH as usize) {
        let messages = (first..count.min(first + BATCH))
            .map(|n| Message::new(None, Bytes::from(format!("record-{n}")), None))
            .collect();
        let mut send = SendMessages {
            stream_id: Identifier::named(stream).unwrap(),
            topic_id: Identifier::named(topic).unwrap(),
            partitioning: Partitioning::partition_id(1 + first / BATCH % PARTITIONS),
            messages,
        };
        done("send", client.send_messages(&mut send)).await;
    }
}

/// Prints every record of the topic: `PARTITION OFFSET PAYLOAD`.
pub async fn read(client: &TcpClient, stream: &str, topic: &str) {
    let get = GetTopic {
        stream_id: Identifier::named(stream).unwrap(),
        topic_id: Identifier::named(topic).unwrap(),
    };
    let Some(found) = step("get topic", client.get_topic(&get)).await else {
        return;
    };
    for partition in 1..=found.partitions_count {
        let mut offset = 0;
        loop {
            let poll = PollMessages {
                consumer: Consumer::new(1),
                stream_id: Identifier::named(stream).unwrap(),
                topic_id: Identifier::named(topic).unwrap(),
                partition_id: Some(partition),
                strategy: PollingStrategy::offset(offset),
                count: BATCH,
                auto_commit: false,
            };
            let Some(polled) = step("poll", client.poll_messages(&poll)).await else {
                return;
            };
            let Some(last) = polled.messages.last() else {
                break;
            };
            offset = last.offset + 1;
            for message in &polled.messages {
                let payload = String::from_utf8_lossy(&message.payload);
                println!("{} {} {payload}", polled.partition_id, message.offset);
            }
        }
    }
}
