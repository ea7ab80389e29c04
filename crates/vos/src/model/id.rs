//! Ids of objects.

use std::fmt;

use crate::{ObjectClass, ObjectType};

/// A 128-bit object id: type (8), redundancy (8), groups (16), then 96 bits of the user's, as in DAOS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(C)]
pub struct ObjectId {
    /// The lower half: the user's.
    pub lo: u64,
    /// The upper half: type and class over 32 bits of the user's.
    pub hi: u64,
}

impl ObjectId {
    /// An id of a type and a class for the user's 64 bits.
    #[must_use]
    pub fn new(object_type: ObjectType, class: ObjectClass, lo: u64) -> Self {
        let class = u64::from(class.id());
        // Redundancy and groups stand side by side here, and 8 bits apart in the class's number.
        let class = (class >> 24) << 16 | (class & 0xffff);
        Self { lo, hi: (object_type as u64) << 56 | class << 32 }
    }

    /// Its class; none where the bits name none.
    #[must_use]
    pub fn class(self) -> Option<ObjectClass> {
        let bits = self.hi >> 32;
        ObjectClass::from_id(((bits >> 16 & 0xff) << 24 | bits & 0xffff) as u32)
    }

    /// Number of its type.
    #[must_use]
    pub fn type_number(self) -> u8 {
        (self.hi >> 56) as u8
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.hi, self.lo)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_and_class_stand_in_the_upper_bits() {
        let class: ObjectClass = "RP_2GX".parse().expect("a class");
        let id = ObjectId::new(ObjectType::ArrayByte, class, 7);
        assert_eq!((id.hi, id.lo), (13 << 56 | 0x08 << 48 | 0xffff << 32, 7));
        assert_eq!((id.class(), id.type_number()), (Some(class), 13));
    }
}
