//! Object classes and types. Numbers are those of DAOS (`daos_obj_class.h`, `daos_obj.h`), so that ids mean the same in both.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::ParseError;

/// How often, or with what parity, a value is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Redundancy {
    /// Once.
    None,
    /// So many times.
    Replicated(u8),
    /// In cells with parity (Reed-Solomon).
    ErasureCoded {
        /// Cells of data.
        data: u8,
        /// Cells of parity.
        parity: u8,
    },
}

/// Over how many redundancy groups an object is spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Groups {
    /// So many.
    Count(u16),
    /// As many as there are targets for.
    All,
}

/// A class: `S1`, `SX`, `RP_2G1`, `EC_4P2GX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ObjectClass {
    /// Redundancy of a group.
    pub redundancy: Redundancy,
    /// Groups.
    pub groups: Groups,
}

/// Redundancies of the ids in `redundancy << 24 | groups`, besides none (1): replicas and parities that there are.
const REDUNDANCIES: &[(u8, Redundancy)] = &[
    (0x01, Redundancy::None),
    (0x08, Redundancy::Replicated(2)),
    (0x09, Redundancy::Replicated(3)),
    (0x0a, Redundancy::Replicated(4)),
    (0x0b, Redundancy::Replicated(5)),
    (0x0c, Redundancy::Replicated(6)),
    (0x20, Redundancy::ErasureCoded { data: 2, parity: 1 }),
    (0x21, Redundancy::ErasureCoded { data: 2, parity: 2 }),
    (0x22, Redundancy::ErasureCoded { data: 4, parity: 1 }),
    (0x23, Redundancy::ErasureCoded { data: 4, parity: 2 }),
    (0x24, Redundancy::ErasureCoded { data: 8, parity: 1 }),
    (0x25, Redundancy::ErasureCoded { data: 8, parity: 2 }),
    (0x26, Redundancy::ErasureCoded { data: 16, parity: 1 }),
    (0x27, Redundancy::ErasureCoded { data: 16, parity: 2 }),
];
/// Groups of a class that takes all targets.
const GROUPS_ALL: u16 = 0xffff;
const ACCEPTED: &str = "S1 to S65534, SX, RP_nGm (n 2 to 6) or EC_kPpGm (k 2, 4, 8 or 16; p 1 or 2), each with X for all groups, such as S1, SX, RP_2G1, EC_4P2GX";

impl ObjectClass {
    /// One shard, once.
    pub const S1: Self = Self { redundancy: Redundancy::None, groups: Groups::Count(1) };
    /// A shard on every target.
    pub const SX: Self = Self { redundancy: Redundancy::None, groups: Groups::All };

    /// Its number: `redundancy << 24 | groups`.
    #[must_use]
    pub fn id(self) -> u32 {
        let known = REDUNDANCIES.iter().find(|(_, redundancy)| *redundancy == self.redundancy);
        let groups = match self.groups {
            Groups::Count(count) => count,
            Groups::All => GROUPS_ALL,
        };
        (u32::from(known.map_or(0, |(id, _)| *id)) << 24) | u32::from(groups)
    }

    /// The class of a number; none where there is no such class.
    #[must_use]
    pub fn from_id(id: u32) -> Option<Self> {
        let (redundancy, groups) = ((id >> 24) as u8, id as u16);
        let known = REDUNDANCIES.iter().find(|(known, _)| *known == redundancy)?;
        let groups = match groups {
            0 => return None,
            GROUPS_ALL => Groups::All,
            count => Groups::Count(count),
        };
        (id >> 16 & 0xff == 0).then_some(Self { redundancy: known.1, groups })
    }

    /// Targets that one group takes.
    #[must_use]
    pub fn group_size(self) -> u32 {
        match self.redundancy {
            Redundancy::None => 1,
            Redundancy::Replicated(copies) => u32::from(copies),
            Redundancy::ErasureCoded { data, parity } => u32::from(data) + u32::from(parity),
        }
    }

    /// Groups over `targets` targets: as many as it names, or as fit. None where not even those that it names fit.
    #[must_use]
    pub fn groups_over(self, targets: u32) -> Option<u32> {
        let fit = targets / self.group_size();
        match self.groups {
            Groups::All => (fit > 0).then_some(fit),
            Groups::Count(count) => (u32::from(count) <= fit).then_some(u32::from(count)),
        }
    }
}

impl fmt::Display for ObjectClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.redundancy {
            Redundancy::None => f.write_str("S")?,
            Redundancy::Replicated(copies) => write!(f, "RP_{copies}G")?,
            Redundancy::ErasureCoded { data, parity } => write!(f, "EC_{data}P{parity}G")?,
        }
        match self.groups {
            Groups::All => f.write_str("X"),
            Groups::Count(count) => write!(f, "{count}"),
        }
    }
}

impl FromStr for ObjectClass {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let refuse = || ParseError::new("an object class", text, ACCEPTED);
        let upper = text.to_ascii_uppercase();
        let (redundancy, groups) = match upper.strip_prefix('S') {
            Some(groups) => (Redundancy::None, groups),
            None => {
                let (kind, groups) = upper.split_once('G').ok_or_else(refuse)?;
                let redundancy = match (kind.strip_prefix("RP_"), kind.strip_prefix("EC_")) {
                    (Some(copies), _) => Redundancy::Replicated(copies.parse().map_err(|_| refuse())?),
                    (None, Some(cells)) => {
                        let (data, parity) = cells.split_once('P').ok_or_else(refuse)?;
                        let number = |text: &str| text.parse().map_err(|_| refuse());
                        Redundancy::ErasureCoded { data: number(data)?, parity: number(parity)? }
                    }
                    (None, None) => return Err(refuse()),
                };
                (redundancy, groups)
            }
        };
        if !REDUNDANCIES.iter().any(|(_, known)| *known == redundancy) {
            return Err(refuse());
        }
        let groups = match groups {
            "X" => Groups::All,
            count => match count.parse() {
                Ok(count) if count > 0 && count < GROUPS_ALL => Groups::Count(count),
                _ => return Err(refuse()),
            },
        };
        Ok(Self { redundancy, groups })
    }
}

impl Serialize for ObjectClass {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ObjectClass {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for ObjectClass {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ObjectClass".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "description": "Object class: S1, SX, RP_2G1, EC_4P2GX." })
    }
}

/// Type of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum ObjectType {
    /// Dkeys and akeys of any bytes.
    MultiHashed = 0,
    /// Dkeys that are 64-bit numbers.
    DkeyUint64 = 2,
    /// A key-value object.
    KvHashed = 8,
    /// An array whose attributes are kept with it.
    Array = 11,
    /// An array that is opened with its attributes.
    ArrayAttr = 12,
    /// An array of bytes that keeps no attributes.
    ArrayByte = 13,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_daos() {
        let known = [
            ("S1", 0x0100_0001),
            ("SX", 0x0100_ffff),
            ("RP_2G1", 0x0800_0001),
            ("RP_2GX", 0x0800_ffff),
            ("RP_3G1", 0x0900_0001),
            ("EC_2P1G1", 0x2000_0001),
            ("EC_2P2G1", 0x2100_0001),
            ("EC_4P2G1", 0x2300_0001),
            ("EC_8P2G1", 0x2500_0001),
        ];
        for (text, id) in known {
            let class: ObjectClass = text.parse().expect(text);
            assert_eq!((class.id(), class.to_string().as_str()), (id, text));
            assert_eq!(ObjectClass::from_id(id), Some(class));
        }
    }

    #[test]
    fn others_are_refused() {
        for text in ["", "S", "S0", "S65535", "RP_1G1", "RP_2", "EC_3P1G1", "EC_4P2", "XL", "RP_2G0"] {
            let error = text.parse::<ObjectClass>().expect_err(text).to_string();
            assert!(error.contains("EC_4P2GX"), "{error}");
        }
        assert_eq!(ObjectClass::from_id(0), None);
        assert_eq!(ObjectClass::from_id(0x0101_0001), None);
    }

    #[test]
    fn groups_fit_or_not() {
        let class = |text: &str| text.parse::<ObjectClass>().expect(text);
        assert_eq!(class("SX").groups_over(8), Some(8));
        assert_eq!(class("S4").groups_over(3), None);
        assert_eq!(class("EC_4P2GX").groups_over(13), Some(2));
        assert_eq!(class("RP_3G1").groups_over(2), None);
    }
}
