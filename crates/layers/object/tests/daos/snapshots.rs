//! Reading at a snapshot.

use object::plan::{ObjectOp, ObjectPlan, ValueKind};
use vos::ObjectType;

use crate::rig::{Rig, errno, operation};
use crate::{backend, end, fake, key, object, typed};
use object::ObjectOperation;

/// An epoch as DAOS gives them: beyond what a double holds.
const EPOCH: u64 = 0x1d3a_0c58_ac20_0001;

/// The same phase with another operation, at a snapshot or now.
fn reading(plan: &ObjectPlan, what: ObjectOp, snapshot: Option<u64>) -> ObjectPlan {
    let mut plan = ObjectPlan { snapshot, ..plan.clone() };
    plan.mix[0].operation = what;
    plan
}

#[test]
fn every_kind_is_read_as_it_was() {
    let (fake, _turn) = fake();
    for (label, object_type, stores, loads) in [
        ("snap-keys", ObjectType::KvHashed, ObjectOp::Put, ObjectOp::Get),
        ("snap-dkeys", ObjectType::MultiHashed, ObjectOp::Update, ObjectOp::Fetch),
        ("snap-bytes", ObjectType::ArrayByte, ObjectOp::Write, ObjectOp::Read),
        ("snap-arrays", ObjectType::Array, ObjectOp::Write, ObjectOp::Read),
    ] {
        let backend = backend(label);
        let mut plan = typed(stores, object_type);
        if stores == ObjectOp::Write {
            plan.dataset.value = ValueKind::Array;
        }
        let of = |what| ObjectOperation {
            object: object(object_type),
            dkey: key("d"),
            akey: key("a"),
            ..operation(what, 100)
        };
        let mut rig = Rig::open(&backend, plan.clone());
        if object_type == ObjectType::Array {
            assert_eq!(rig.run(of(ObjectOp::Create)), 0);
        }
        rig.fill(0, &[1; 100]);
        assert_eq!(rig.run(of(stores)), 100, "{label}");
        drop(rig);
        let unknown = backend.check(&reading(&plan, loads, Some(EPOCH))).expect_err("no snapshot");
        assert_eq!(unknown.exit_code(), 2);
        assert!(unknown.to_string().contains("daos container create-snap pool snap-"), "{unknown}");
        fake.snap(label, EPOCH);
        let unknown = backend.check(&reading(&plan, loads, Some(EPOCH + 1))).expect_err("another one");
        assert!(unknown.to_string().contains(&format!("existing snapshots: {EPOCH}")), "{unknown}");
        // Written over, and then gone: the latest changes, the snapshot does not.
        let mut rig = Rig::open(&backend, plan.clone());
        rig.fill(0, &[2; 100]);
        assert_eq!(rig.run(of(stores)), 100);
        drop(rig);
        for (snapshot, byte) in [(None, 2), (Some(EPOCH), 1)] {
            let mut rig = Rig::open(&backend, reading(&plan, loads, snapshot));
            assert_eq!(rig.run(of(loads)), 100, "{label} {snapshot:?}");
            assert_eq!(rig.bytes(0, 100), [byte; 100], "{label} {snapshot:?}");
        }
        let mut rig = Rig::open(&backend, plan.clone());
        let (takes_away, tells) = match loads {
            ObjectOp::Get => (ObjectOp::Remove, Some((ObjectOp::Stat, 100))),
            ObjectOp::Read => (ObjectOp::Destroy, Some((ObjectOp::Size, 100))),
            _ => (ObjectOp::Punch, None),
        };
        assert_eq!(rig.run(of(takes_away)), 0, "{label}");
        drop(rig);
        let mut rig = Rig::open(&backend, reading(&plan, loads, Some(EPOCH)));
        assert_eq!(rig.run(of(loads)), 100, "{label}");
        if let Some((what, size)) = tells {
            assert_eq!(rig.run(of(what)), size, "{label}");
        }
        if loads == ObjectOp::Get {
            assert_eq!(rig.run(of(ObjectOp::List)), 1, "{label}");
        }
        drop(rig);
        let mut rig = Rig::open(&backend, reading(&plan, loads, None));
        let now = rig.run(of(loads));
        assert!(now == errno(libc::ENOENT) || now == 0, "{label}: {now}");
        drop(rig);
        end(fake, backend);
    }
}
