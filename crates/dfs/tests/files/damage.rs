//! Entries that cannot be read, and what a kill leaves.

use dfs::{Errno, Inode};
use vos::model::ObjectId;
use vos::{Ack, Action, Condition, KeyPath, ObjectClass, ObjectType, Punch, Read, Step};

use super::support::{Ground, InProcess, Paths};

/// The root directory's object, for directories over all targets.
fn root() -> ObjectId {
    ObjectId::new(ObjectType::MultiHashed, ObjectClass::SX, 1)
}

fn step<'a>(dkey: &'a [u8], action: Action<'a>) -> Step<'a> {
    Step { object: root(), dkey, akey: b"inode", condition: Condition::Any, action }
}

#[test]
fn a_damaged_entry_is_an_input_error_that_names_its_object() {
    let ground = InProcess::new(2, 4096);
    let files = ground.client();
    let paths = Paths(&*files);
    paths.put("good", b"content").expect("written");
    paths.put("bad", b"content").expect("written");
    let container = ground.pool.find_container("dfs").expect("there").id;
    let garbage = Action::Update(b"no inode at all");
    ground.pool.apply(container, &[step(b"bad", garbage)], Ack::AsConfigured).expect("stored");
    assert_eq!(paths.stat("bad"), Err(Errno::IO));
    let findings = files.take_findings().join("; ");
    assert!(findings.contains(&root().to_string()) && findings.contains("entry bad"), "{findings}");
    let names: Vec<_> = paths.names("").expect("listed").into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, [b"bad".to_vec(), b"good".to_vec()], "it is shown");
    assert_eq!(paths.get("good"), Ok(b"content".to_vec()));
}

#[test]
fn renames_that_were_cut_off_are_finished_at_the_next_opening() {
    let ground = InProcess::new(2, 4096);
    let files = ground.client();
    let paths = Paths(&*files);
    paths.put("old", b"content").expect("written");
    let container = ground.pool.find_container("dfs").expect("there").id;
    let inode = |name: &[u8]| {
        let mut value = [0; 128];
        let place = KeyPath { container, object: root(), dkey: name, akey: b"inode" };
        let target = ground.pool.target_of(root(), name).expect("placed");
        let found = target.fetch(&place, Read::Single, None, &mut value).expect("there");
        value[..found.bytes as usize].to_vec()
    };
    // As after a failure between the two steps of a rename: the intent is there, and both names.
    let value = inode(b"old");
    let mut intent = vec![2];
    intent.extend_from_slice(&0_i64.to_le_bytes());
    intent.extend_from_slice(&value[16..32]);
    for name in [&b"old"[..], b"new"] {
        intent.extend_from_slice(&root().lo.to_le_bytes());
        intent.extend_from_slice(&root().hi.to_le_bytes());
        intent.extend_from_slice(&(name.len() as u32).to_le_bytes());
        intent.extend_from_slice(name);
    }
    intent.extend_from_slice(&0_u32.to_le_bytes());
    let superblock = ObjectId::new(ObjectType::MultiHashed, ObjectClass::S1, 0);
    let noted = Step { object: superblock, ..step(b"/intent00000000abcd", Action::Update(&intent)) };
    let steps = [noted, step(b"new", Action::Update(&value))];
    ground.pool.apply(container, &steps, Ack::AsConfigured).expect("stored");
    let other = ground.client();
    let names: Vec<_> = Paths(&*other).names("").expect("listed").into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, [b"new".to_vec()]);
    assert_eq!(Paths(&*other).get("new"), Ok(b"content".to_vec()));
    let gone = ground.pool.apply(
        container,
        &[Step { condition: Condition::Present, action: Action::Check, ..noted }],
        Ack::AsConfigured,
    );
    assert!(gone.is_err(), "the intent is done with");
}

#[test]
fn a_directory_whose_removal_was_cut_off_takes_entries_again() {
    let ground = InProcess::new(2, 4096);
    let files = ground.client();
    Paths(&*files).mkdir("d").expect("made");
    let container = ground.pool.find_container("dfs").expect("there").id;
    let number = Paths(&*files).stat("d").expect("there").inode.0;
    let object = ObjectId::new(ObjectType::MultiHashed, ObjectClass::SX, number);
    let mut intent = vec![1];
    intent.extend_from_slice(&0_i64.to_le_bytes());
    for (id, name) in [(object, None), (root(), Some(b"d")), (root(), Some(b"d"))] {
        intent.extend_from_slice(&id.lo.to_le_bytes());
        intent.extend_from_slice(&id.hi.to_le_bytes());
        if let Some(name) = name {
            intent.extend_from_slice(&1_u32.to_le_bytes());
            intent.extend_from_slice(name);
        }
    }
    intent.extend_from_slice(&0_u32.to_le_bytes());
    let superblock = ObjectId::new(ObjectType::MultiHashed, ObjectClass::S1, 0);
    let noted = Step { object: superblock, ..step(b"/intent00000000abcd", Action::Update(&intent)) };
    let closed = Step { object, ..step(b"/live", Action::Punch(Punch::Dkey)) };
    ground.pool.apply(container, &[noted, closed], Ack::AsConfigured).expect("stored");
    assert_eq!(Paths(&*files).put("d/file", b""), Err(Errno::NOENT), "it is being removed");
    Paths(&*ground.client()).put("d/file", b"").expect("it was not");
    assert_eq!(files.remove_directory(Inode::ROOT, b"d"), Err(Errno::NOTEMPTY));
}
