//! Keys that lie on several targets: copies, cells of data and parity.

use std::sync::Arc;

use crate::{ObjectClass, ObjectType};

use super::promises::Value;
use super::world::{Keys, PART_BYTES, PARTS, World, number_of};
use crate::coded::{Coded, Group};
use crate::erasure::{Coder, EXTENT_CELL_BYTES};
use crate::model::ObjectId;
use crate::placement::Placement;
use crate::{Ack, Punch, Read, StoreError, Target, Write, punch_all, update_all};

/// Cells of data and parity.
const DATA: u8 = 2;
const PARITY: u8 = 1;
/// Whole stripes around an array.
const STRIPES_BYTES: usize =
    (PARTS as usize * PART_BYTES).next_multiple_of(DATA as usize * EXTENT_CELL_BYTES as usize);

/// How a key lies on targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spread {
    Copied,
    Coded,
}

impl Spread {
    fn class(self) -> ObjectClass {
        let class = match self {
            Self::Copied => "RP_2G1",
            Self::Coded => "EC_2P1G1",
        };
        class.parse().expect("a class")
    }

    pub(super) fn object(self, number: u64) -> ObjectId {
        ObjectId::new(ObjectType::MultiHashed, self.class(), number)
    }
}

impl World {
    fn placement(&self, spread: Spread) -> Placement {
        Placement::new(spread.class(), self.scenario.targets).expect("enough targets")
    }

    /// The targets of a key's copies or cells.
    fn shards(&self, keys: &Keys, spread: Spread) -> Vec<&Arc<Target>> {
        let placement = self.placement(spread);
        let number = |shard| placement.target(keys.object, 0, shard) as usize;
        (0..placement.group_size()).map(|shard| self.pool().target(number(shard))).collect()
    }

    fn coded<T>(
        &self,
        keys: &Keys,
        ack: Ack,
        act: impl FnOnce(&mut Coded, &Group<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let (pool, placement) = (self.pool(), self.placement(Spread::Coded));
        let place = keys.place(self.container());
        let group = Group::of(pool, &placement, place, ack, None);
        act(&mut Coded::new(DATA, PARITY, 0), &group)
    }

    pub(super) fn write_spread(
        &self,
        (keys, spread): (&Keys, Spread),
        write: Write,
        data: &[u8],
        ack: Ack,
    ) -> Result<(), StoreError> {
        if spread == Spread::Coded {
            return self.coded(keys, ack, |coded, group| coded.write(group, write, data));
        }
        let turn = self.pool().order().of(keys.object, &keys.dkey);
        update_all(&turn, keys.place(self.container()), &self.shards(keys, spread), (write, data), ack)
    }

    pub(super) fn punch_spread(&self, keys: &Keys, spread: Spread) -> Result<(), StoreError> {
        let turn = self.pool().order().of(keys.object, &keys.dkey);
        let (place, shards) = (keys.place(self.container()), self.shards(keys, spread));
        punch_all(&turn, place, &shards, Punch::Akey, Ack::AsConfigured)
    }

    /// Value of all copies, or of the cells together.
    pub(super) fn read_spread(
        &self,
        key: u32,
        (keys, spread): (&Keys, Spread),
        read: Read,
        room: usize,
        epoch: Option<u64>,
    ) -> Value {
        let mut values = Vec::new();
        match spread {
            Spread::Copied => {
                for target in self.shards(keys, spread) {
                    let mut buffer = vec![0; room];
                    let found = target.fetch(&keys.place(self.container()), read, epoch, &mut buffer);
                    let found = found.map(|found| found.bytes);
                    values.push(number_of(key, found, &buffer));
                }
            }
            // Cells are read at the latest epoch alone.
            Spread::Coded => {
                assert!(epoch.is_none());
                let mut buffer = vec![0; room];
                let found = self.coded(keys, Ack::AsConfigured, |coded, group| {
                    let found = coded.read(group, read, &mut buffer);
                    assert_eq!(coded.take_flaw(), None, "key {key}: a cell is missing");
                    found
                });
                values.push(number_of(key, found, &buffer));
            }
        }
        assert!(values.iter().all(|value| *value == values[0]), "copies of key {key} differ: {values:?}");
        values[0]
    }

    /// The parity of an array against its data.
    pub(super) fn check_parity(&self, key: u32, keys: &Keys) {
        let bytes = STRIPES_BYTES / usize::from(DATA);
        let read = |target: &&Arc<Target>| {
            let mut cells = vec![0; bytes];
            let read = Read::Extent { offset_bytes: 0 };
            match target.fetch(&keys.place(self.container()), read, None, &mut cells) {
                Ok(_) | Err(StoreError::NotFound) => cells,
                Err(error) => panic!("the array of key {key}: {error}"),
            }
        };
        let cells: Vec<Vec<u8>> = self.shards(keys, Spread::Coded).iter().map(read).collect();
        let (data, parity) = cells.split_at(usize::from(DATA));
        let mut expected = vec![0; bytes * usize::from(PARITY)];
        Coder::new(DATA, PARITY).encode(&data.concat(), bytes, &mut expected);
        assert!(parity.concat() == expected, "the parity of the array of key {key} does not fit its data");
    }
}
