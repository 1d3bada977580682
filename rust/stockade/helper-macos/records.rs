//! The records of `protocol` on a stream socket, which keeps no boundaries: fixed sizes, put together again on arrival.

use super::protocol::{Event, Request};

const REQUEST: usize = size_of::<Request>();
pub(crate) const EVENT: usize = size_of::<Event>();

/// Puts requests together from whatever pieces arrive.
#[derive(Default)]
pub(crate) struct Requests {
    bytes: Vec<u8>,
}

impl Requests {
    pub(crate) fn add(&mut self, piece: &[u8]) {
        self.bytes.extend_from_slice(piece);
    }

    pub(crate) fn next(&mut self) -> Option<Request> {
        let (record, _) = self.bytes.split_first_chunk::<REQUEST>()?;
        let word = |at: usize| u32::from_ne_bytes(std::array::from_fn(|i| record[at + i]));
        let request = Request {
            kind: word(0),
            value: word(4).cast_signed(),
            flag: word(8),
        };
        self.bytes.drain(..REQUEST);
        Some(request)
    }
}

pub(crate) fn event_bytes(event: &Event) -> [u8; EVENT] {
    let mut bytes = [0; EVENT];
    bytes[0..4].copy_from_slice(&event.kind.to_ne_bytes());
    bytes[4..8].copy_from_slice(&event.status.to_ne_bytes());
    bytes[8..12].copy_from_slice(&event.count.to_ne_bytes());
    bytes[16..24].copy_from_slice(&event.user_us.to_ne_bytes());
    bytes[24..32].copy_from_slice(&event.system_us.to_ne_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_in_any_pieces_come_out_whole_and_in_order() {
        let sent: Vec<Request> = (1..=3)
            .map(|kind| Request {
                kind,
                value: -5,
                flag: 7 * kind,
            })
            .collect();
        let bytes: Vec<u8> = sent
            .iter()
            .flat_map(|request| [request.kind, request.value.cast_unsigned(), request.flag])
            .flat_map(u32::to_ne_bytes)
            .collect();
        for size in 1..=bytes.len() {
            let mut requests = Requests::default();
            let mut received = Vec::new();
            for piece in bytes.chunks(size) {
                requests.add(piece);
                received.extend(std::iter::from_fn(|| requests.next()));
            }
            assert_eq!(received, sent, "in pieces of {size}");
        }
    }
}
