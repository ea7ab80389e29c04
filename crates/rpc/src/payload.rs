//! Payloads that are checked: their bytes follow from seed, number and direction alone, so both sides can make and check them.
//!
//! Each block of 4 KiB begins with a stamp of 16 bytes: number, block and direction, under a mask. The rest is the stream of the
//! number. The stamp tells bytes that belong elsewhere from bytes that are damaged.

use driver::Fault;
use workload::content::Stream;

/// Bytes that one stamp stands for.
pub const BLOCK_BYTES: usize = 4096;
const STAMP_BYTES: usize = 16;
/// Last four bytes of a stamp before the mask.
const STAMP_SIGN: u32 = 0x5374_7052;

/// Which way a payload goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the engine.
    Request = 0,
    /// To the client.
    Reply = 1,
}

impl Direction {
    const BOTH: [Self; 2] = [Self::Request, Self::Reply];

    fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Reply => "reply",
        }
    }
}

/// Makes and checks the payloads of one seed. Allocates only when it is made.
#[derive(Clone, Debug)]
pub struct Content {
    seed: u32,
    key: Key,
    expected: Box<[u8; BLOCK_BYTES]>,
}

/// Key that payloads of a seed are made from.
#[derive(Clone, Debug)]
struct Key {
    streams: [Stream; 2],
    masks: [u128; 2],
}

impl Content {
    /// For the payloads of `seed`.
    #[must_use]
    pub fn new(seed: u32) -> Self {
        Self { seed, key: Key::new(seed), expected: Box::new([0; BLOCK_BYTES]) }
    }

    /// The seed it is for.
    #[inline]
    #[must_use]
    pub fn seed(&self) -> u32 {
        self.seed
    }

    /// Turns to another seed, where it is another.
    #[inline]
    pub fn turn_to(&mut self, seed: u32) {
        if seed != self.seed {
            self.seed = seed;
            self.key = Key::new(seed);
        }
    }

    /// Fills `buf` with the payload of RPC `sequence`.
    pub fn fill(&self, direction: Direction, sequence: u64, buf: &mut [u8]) {
        for (block, bytes) in (0..).zip(buf.chunks_mut(BLOCK_BYTES)) {
            self.key.fill_block(direction, sequence, block, bytes);
        }
    }

    /// Checks that `buf` is the payload of RPC `sequence`.
    ///
    /// # Errors
    /// `misplaced` when the bytes are those of another RPC, block or direction of the same seed; else `corrupt`.
    pub fn check(&mut self, direction: Direction, sequence: u64, buf: &[u8]) -> Result<(), Fault> {
        for (block, bytes) in (0..).zip(buf.chunks(BLOCK_BYTES)) {
            let expected = &mut self.expected[..bytes.len()];
            self.key.fill_block(direction, sequence, block, expected);
            if expected != bytes {
                return Err(self.key.diagnose(direction, sequence, block, bytes, expected));
            }
        }
        Ok(())
    }
}

impl Key {
    fn new(seed: u32) -> Self {
        let streams = Direction::BOTH.map(|direction| Stream::new(u64::from(seed), direction as u64));
        // Numbers count up from 0, so no payload is made from the last one.
        let mask = |stream: &Stream| u128::from_le_bytes(stream.lane(u64::MAX, 0));
        let masks = [mask(&streams[0]), mask(&streams[1])];
        Self { streams, masks }
    }

    #[inline]
    fn fill_block(&self, direction: Direction, sequence: u64, block: u32, bytes: &mut [u8]) {
        let stamp = self.stamp(direction, sequence, block);
        let stamped = bytes.len().min(STAMP_BYTES);
        bytes[..stamped].copy_from_slice(&stamp[..stamped]);
        if bytes.len() > STAMP_BYTES {
            let position = u64::from(block) * BLOCK_BYTES as u64 + STAMP_BYTES as u64;
            self.streams[direction as usize].fill(&mut bytes[STAMP_BYTES..], sequence, position);
        }
    }

    #[inline]
    fn stamp(&self, direction: Direction, sequence: u64, block: u32) -> [u8; STAMP_BYTES] {
        let plain = u128::from(sequence) | u128::from(block) << 64 | u128::from(STAMP_SIGN) << 96;
        (plain ^ self.masks[direction as usize]).to_le_bytes()
    }

    #[cold]
    fn diagnose(
        &self,
        direction: Direction,
        sequence: u64,
        block: u32,
        found: &[u8],
        expected: &[u8],
    ) -> Fault {
        if let Some((other, number, other_block)) = self.origin(found)
            && (other, number, other_block) != (direction, sequence, block)
        {
            let detail = format!(
                "{} {sequence}, block {block}: the bytes belong to {} {number}, block {other_block}",
                direction.name(),
                other.name(),
            );
            return Fault { cause: "misplaced", detail };
        }
        let differs = |(_, (a, b)): &(usize, (&u8, &u8))| a != b;
        let mut wrong = found.iter().zip(expected).enumerate().filter(differs).map(|(at, _)| at);
        let first = wrong.next().unwrap_or(0);
        let count = wrong.count() + 1;
        let at = u64::from(block) * BLOCK_BYTES as u64 + first as u64;
        let detail = format!(
            "{} {sequence}: {count} of {} bytes of block {block} are wrong, the first at byte {at}",
            direction.name(),
            found.len(),
        );
        Fault { cause: "corrupt", detail }
    }

    /// Direction, sequence and block that the stamp states; none when it is no stamp of this seed, or too few bytes to tell.
    fn origin(&self, found: &[u8]) -> Option<(Direction, u64, u32)> {
        let stamp = u128::from_le_bytes(*found.first_chunk::<STAMP_BYTES>()?);
        Direction::BOTH.into_iter().find_map(|direction| {
            let plain = stamp ^ self.masks[direction as usize];
            let is_stamp = (plain >> 96) as u32 == STAMP_SIGN;
            is_stamp.then_some((direction, plain as u64, (plain >> 64) as u32))
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn made(seed: u32, direction: Direction, sequence: u64, bytes: usize) -> Vec<u8> {
        let mut buf = vec![0; bytes];
        Content::new(seed).fill(direction, sequence, &mut buf);
        buf
    }

    fn direction() -> impl Strategy<Value = Direction> {
        prop_oneof![Just(Direction::Request), Just(Direction::Reply)]
    }

    proptest! {
        #[test]
        fn what_is_filled_is_right(seed: u32, direction in direction(), sequence: u64, bytes in 0usize..20_000) {
            let buf = made(seed, direction, sequence, bytes);
            prop_assert_eq!(Content::new(seed).check(direction, sequence, &buf), Ok(()));
        }

        #[test]
        fn one_wrong_bit_is_found_where_it_is(
            direction in direction(), sequence: u64, bytes in 1usize..20_000, at: prop::sample::Index, bit in 0u8..8,
        ) {
            let mut buf = made(7, direction, sequence, bytes);
            let at = at.index(bytes);
            buf[at] ^= 1 << bit;
            let fault = Content::new(7).check(direction, sequence, &buf).expect_err("one bit is wrong");
            // A bit of a stamp's number or block says another origin.
            if at % BLOCK_BYTES >= STAMP_BYTES {
                prop_assert_eq!(fault.cause, "corrupt");
                let text = format!("first at byte {at}");
                prop_assert!(fault.detail.ends_with(&text), "{}", fault.detail);
            }
        }

        #[test]
        fn payloads_of_others_are_misplaced(
            direction in direction(), sequence in 0u64..1000, other_direction in direction(), other in 0u64..1000,
            bytes in STAMP_BYTES..9000,
        ) {
            let buf = made(7, other_direction, other, bytes);
            let result = Content::new(7).check(direction, sequence, &buf);
            if (direction, sequence) == (other_direction, other) {
                prop_assert_eq!(result, Ok(()));
            } else {
                prop_assert_eq!(result.expect_err("another's").cause, "misplaced");
            }
        }

        #[test]
        fn another_seed_is_corrupt(sequence: u64, bytes in STAMP_BYTES..9000) {
            let buf = made(1, Direction::Reply, sequence, bytes);
            let mut content = Content::new(2);
            prop_assert_eq!(content.check(Direction::Reply, sequence, &buf).expect_err("another seed").cause, "corrupt");
            content.turn_to(1);
            prop_assert_eq!(content.seed(), 1);
            prop_assert_eq!(content.check(Direction::Reply, sequence, &buf), Ok(()));
        }
    }

    #[test]
    fn blocks_that_were_exchanged_are_misplaced() {
        let mut buf = made(3, Direction::Request, 9, 3 * BLOCK_BYTES);
        let (first, second) = buf.split_at_mut(BLOCK_BYTES);
        first.swap_with_slice(&mut second[..BLOCK_BYTES]);
        let fault = Content::new(3).check(Direction::Request, 9, &buf).expect_err("exchanged");
        assert_eq!(fault.cause, "misplaced");
        assert_eq!(fault.detail, "request 9, block 0: the bytes belong to request 9, block 1");
    }

    #[test]
    fn bytes_that_never_came_are_corrupt() {
        let fault = Content::new(3).check(Direction::Reply, 4, &[0; 5000]).expect_err("nothing came");
        assert_eq!(fault.cause, "corrupt");
        assert!(fault.detail.starts_with("reply 4: "), "{}", fault.detail);
    }

    /// Neither side may change what the other one makes.
    #[test]
    fn bytes_are_pinned() {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let buf = made(1, Direction::Request, 2, 32);
        assert_eq!(hex(&buf), "7b58e079c8017e9bfc824967742f2aae03b0a2268c107f46434390032a44b7a7");
    }
}
