//! Containers that were there before: what others put there stays as it is, and what the run put there goes at its end.

use std::sync::atomic::AtomicU64;

use object::backend::Journal;
use object::plan::Made;
use parking_lot::Mutex as Lock;

use super::*;

/// A journal that remembers.
#[derive(Default)]
struct Noted(Lock<Vec<Made>>);

impl Journal for Noted {
    fn run(&self) -> u64 {
        1
    }

    fn owner(&self) -> u64 {
        1
    }

    fn note(&self, _: &ConnectRequest, made: &[Made]) -> Result<(), driver::Error> {
        *self.0.lock() = made.to_vec();
        Ok(())
    }
}

/// A container of somebody else: made, and kept, by another run.
fn of_others(container: &str) -> Arc<dyn Backend> {
    let others = backend(container);
    others.prepare(&typed(ObjectOp::Put, ObjectType::KvHashed)).expect("made");
    others
}

fn put(number: u64, id: u64) -> ObjectOperation {
    ObjectOperation {
        object: ObjectId::new(ObjectType::KvHashed, ObjectClass::S1, id),
        dkey: key("key-").followed_by(number),
        ..operation(ObjectOp::Put, 100)
    }
}

fn get(number: u64, id: u64) -> ObjectOperation {
    ObjectOperation { operation: ObjectOp::Get, ..put(number, id) }
}

/// A plan over the objects `first` to `first + count`.
fn over(operation: ObjectOp, first: u64, count: u64) -> ObjectPlan {
    let mut plan = typed(operation, ObjectType::KvHashed);
    (plan.dataset.first_id, plan.dataset.objects) = (first, count);
    plan
}

fn asked(container: &str, journal: &Arc<Noted>) -> ConnectRequest {
    let journal: Arc<dyn Journal> = journal.clone();
    ConnectRequest { journal, ..request(&format!("daos://pool/{container}")) }
}

#[test]
fn what_a_run_put_into_a_container_of_others_goes_and_theirs_stays() {
    let (fake, _turn) = fake();
    let others = of_others("shared");
    assert_eq!(Rig::open(&others, over(ObjectOp::Put, 100, 1)).run(put(1, 100)), 100);
    let noted = Arc::new(Noted::default());
    let own = object::connect(&asked("shared", &noted)).expect("connected");
    let mut rig = Rig::open(&own, over(ObjectOp::Put, 1, 40));
    let made = noted.0.lock().clone();
    let [Made::ObjectIds { label, first: 1, last: 40, .. }] = &made[..] else { panic!("{made:?}") };
    assert_eq!(label, "shared");
    for id in 1..=40 {
        assert_eq!(rig.run(put(1, id)), 100);
    }
    drop(rig);
    // A later phase of the run works on them, and takes away what it likes of its own.
    let mut rig = Rig::open(&own, over(ObjectOp::Remove, 1, 40));
    assert_eq!(rig.run(ObjectOperation { operation: ObjectOp::Remove, value_bytes: 0, ..put(1, 2) }), 0);
    drop(rig);
    let count = AtomicU64::new(0);
    let left = own.clean(&|told| count.store(told, Ordering::Relaxed)).expect("cleaned");
    assert!(left.is_empty() && count.into_inner() == 40, "{left:?}");
    assert!(noted.0.lock().is_empty(), "{:?}", noted.0.lock());
    drop(own);
    let mut rig = Rig::open(&others, over(ObjectOp::Get, 1, 40));
    assert!((1..=40).all(|id| rig.run(get(1, id)) == errno(libc::ENOENT)));
    assert_eq!(rig.run(get(1, 100)), 100, "of others");
    drop(rig);
    end(fake, others);
}

#[test]
fn objects_of_others_are_changed_with_leave_alone_and_stay() {
    let (fake, _turn) = fake();
    let others = of_others("theirs");
    assert_eq!(Rig::open(&others, over(ObjectOp::Put, 5, 1)).run(put(1, 5)), 100);
    let noted = Arc::new(Noted::default());
    let mut request = asked("theirs", &noted);
    for operation in [ObjectOp::Put, ObjectOp::Remove, ObjectOp::Punch] {
        let own = object::connect(&request).expect("connected");
        let error = own.prepare(&over(operation, 1, 10)).expect_err("refused");
        assert_eq!(error.exit_code(), 2, "{error}");
        let error = error.to_string();
        assert!(
            error.contains("this run did not create")
                && error.contains(".5, objects=1")
                && error.contains("--destroy-data"),
            "{error}"
        );
        assert!(noted.0.lock().is_empty() && own.clean(&|_| ()).expect("nothing made").is_empty());
        own.prepare(&over(operation, 6, 10)).expect("other ids");
        own.prepare(&over(ObjectOp::Get, 1, 10)).expect("reading changes nothing");
        own.clean(&|_| ()).expect("cleaned");
    }
    request.destroys = true;
    let own = object::connect(&request).expect("connected");
    let mut rig = Rig::open(&own, over(ObjectOp::Put, 1, 10));
    assert_eq!(noted.0.lock().len(), 2, "those before it and those behind it");
    for id in 1..=10 {
        assert_eq!(rig.run(put(2, id)), 100);
    }
    drop(rig);
    let left = own.clean(&|_| ()).expect("cleaned").join("; ");
    assert!(left.contains("container theirs: 1 of the objects contained data before"), "{left}");
    drop(own);
    let mut rig = Rig::open(&others, over(ObjectOp::Get, 1, 10));
    assert_eq!([rig.run(get(1, 5)), rig.run(get(2, 5))], [100, 100], "it stays");
    assert_eq!([rig.run(get(2, 4)), rig.run(get(2, 6))], [errno(libc::ENOENT); 2], "it was the run's own");
    drop(rig);
    end(fake, others);
}

#[test]
fn what_a_killed_run_put_there_is_found_by_its_manifest() {
    let (fake, _turn) = fake();
    let others = of_others("killed");
    let noted = Arc::new(Noted::default());
    let request = asked("killed", &noted);
    let own = object::connect(&request).expect("connected");
    assert_eq!(Rig::open(&own, over(ObjectOp::Put, 1, 3)).run(put(1, 3)), 100);
    let made = noted.0.lock().clone();
    drop(own);
    let later = object::connect(&request).expect("connected");
    later.take_over(&made).expect("taken over");
    assert_eq!(later.look().expect("looked"), ["objects 1 to 3 in container killed"]);
    assert!(later.clean(&|_| ()).expect("cleaned").is_empty());
    drop(later);
    assert_eq!(Rig::open(&others, over(ObjectOp::Get, 1, 3)).run(get(1, 3)), errno(libc::ENOENT));
    end(fake, others);
    // The same label, and another container.
    let again = of_others("killed");
    let later = object::connect(&request).expect("connected");
    later.take_over(&made).expect("taken over");
    let left = later.clean(&|_| ()).expect("cleaned").join("; ");
    assert!(left.contains("recreated under this label"), "{left}");
    drop(later);
    end(fake, again);
}
