//! Random bytes addressed by key, generation and position.
//!
//! The 16 bytes (a *lane*) at position `p` are an AES counter block with four rounds:
//!
//! ```text
//! block = (p / 16) | generation << 64        little-endian
//! lane  = aesenc(aesenc(aesenc(aesenc(block ^ k0, k1), k2), k3), k4)
//! ```
//!
//! `aesenc` is one AES round (ShiftRows, SubBytes, MixColumns, AddRoundKey). Four rounds are enough for every counter
//! bit to reach every output bit; one round still compresses and two show structure. This is noise for
//! storage, not a cipher.
//!
//! A lane depends on nothing but (key, generation, position), so any range can be made alone and read-back data can be
//! recomputed. All [`Backend`]s give the same bytes.

#[cfg(target_arch = "aarch64")]
mod aarch64;
mod portable;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(test)]
mod tests;

/// Bytes made by one AES counter block.
pub const LANE_BYTES: usize = 16;

/// Five round keys: whitening and four rounds.
pub(crate) type RoundKeys = [u128; 5];

/// Digits of pi: the fixed key under which (seed, stream) is turned into round keys.
const DERIVATION_KEYS: RoundKeys = [
    0x243f6a88_85a308d3_13198a2e_03707344,
    0xa4093822_299f31d0_082efa98_ec4e6c89,
    0x452821e6_38d01377_be5466cf_34e90c6c,
    0xc0ac29b7_c97c50dd_3f84d5b5_b5470917,
    0x9216d5d9_8979fb1b_d1310ba6_98dfb5ac,
];

/// Purpose of the bytes: streams of one (seed, stream) with different purposes share nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Data = 0,
    DedupPool = 1,
    DedupChoice = 2,
    Repeat = 3,
    PoolRepeat = 4,
    Stamp = 5,
    Verify = 6,
}

/// The instructions that make the bytes. Every backend makes the same ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// x86-64 VAES on 512-bit registers (needs AVX-512F).
    Vaes512,
    /// x86-64 VAES on 256-bit registers (needs AVX2).
    Vaes256,
    /// x86-64 AES-NI.
    AesNi,
    /// AArch64 cryptography extension.
    ArmAes,
    /// Table look-ups; every processor.
    Portable,
}

impl Backend {
    /// All backends, fastest first.
    pub const ALL: [Backend; 5] =
        [Backend::Vaes512, Backend::Vaes256, Backend::AesNi, Backend::ArmAes, Backend::Portable];

    /// Whether this processor has the instructions.
    pub fn is_available(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Backend::Vaes512 => is_x86_feature_detected!("vaes") && is_x86_feature_detected!("avx512f"),
            #[cfg(target_arch = "x86_64")]
            Backend::Vaes256 => is_x86_feature_detected!("vaes") && is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "x86_64")]
            Backend::AesNi => is_x86_feature_detected!("aes"),
            #[cfg(target_arch = "aarch64")]
            Backend::ArmAes => std::arch::is_aarch64_feature_detected!("aes"),
            Backend::Portable => true,
            _ => false,
        }
    }

    /// The fastest backend this processor has.
    pub fn detect() -> Backend {
        Backend::ALL.into_iter().find(|backend| backend.is_available()).unwrap_or(Backend::Portable)
    }
}

/// A keyed, seekable stream of random bytes.
#[derive(Clone, Debug)]
pub struct Stream {
    keys: RoundKeys,
    backend: Backend,
}

impl Stream {
    /// The data stream number `stream` of `seed`. Different (seed, stream) pairs have different keys.
    pub fn new(seed: u64, stream: u64) -> Stream {
        Stream::for_purpose(seed, stream, Purpose::Data)
    }

    pub(crate) fn for_purpose(seed: u64, stream: u64, purpose: Purpose) -> Stream {
        let pair = u128::from(seed) | u128::from(stream) << 64;
        let mut derivation = DERIVATION_KEYS;
        let keys = std::array::from_fn(|round| {
            derivation[2] = DERIVATION_KEYS[2] ^ (purpose as u128) << 8 ^ round as u128;
            portable::lane(&derivation, pair)
        });
        Stream { keys, backend: Backend::detect() }
    }

    /// The same stream made by `backend`; `None` where this processor lacks its instructions.
    pub fn with_backend(mut self, backend: Backend) -> Option<Stream> {
        self.backend = backend;
        backend.is_available().then_some(self)
    }

    /// Its round keys, for those who make the same bytes elsewhere.
    pub(crate) fn keys(&self) -> RoundKeys {
        self.keys
    }

    /// The instructions in use.
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// Fills `buf` with the bytes of `generation` from byte `position` on.
    pub fn fill(&self, buf: &mut [u8], generation: u64, position: u64) {
        let first_lane = position / LANE_BYTES as u64;
        let skew = (position % LANE_BYTES as u64) as usize;
        if skew == 0 {
            self.fill_from_lane(buf, generation, first_lane);
            return;
        }
        let head_bytes = (LANE_BYTES - skew).min(buf.len());
        let lane = self.lane(generation, first_lane);
        buf[..head_bytes].copy_from_slice(&lane[skew..skew + head_bytes]);
        self.fill_from_lane(&mut buf[head_bytes..], generation, first_lane + 1);
    }

    /// Lane number `lane` (position / 16) of `generation`.
    #[inline]
    pub fn lane(&self, generation: u64, lane: u64) -> [u8; LANE_BYTES] {
        #[cfg(target_arch = "x86_64")]
        if self.backend != Backend::Portable {
            return x86_64::lane(self, generation, lane);
        }
        let mut bytes = [0; LANE_BYTES];
        self.fill_from_lane(&mut bytes, generation, lane);
        bytes
    }

    fn fill_from_lane(&self, buf: &mut [u8], generation: u64, first_lane: u64) {
        match self.backend {
            #[cfg(target_arch = "x86_64")]
            Backend::Vaes512 | Backend::Vaes256 | Backend::AesNi => {
                x86_64::fill(self, buf, generation, first_lane);
            }
            #[cfg(target_arch = "aarch64")]
            Backend::ArmAes => aarch64::fill(self, buf, generation, first_lane),
            _ => portable::fill(&self.keys, buf, generation, first_lane),
        }
    }
}

/// The counter block of a lane before whitening.
#[inline]
fn counter_block(generation: u64, lane: u64) -> u128 {
    u128::from(lane) | u128::from(generation) << 64
}
