//! Merge patches of JSON (RFC 7396): progress travels as what changed since the report before it.

use serde_json::{Map, Value};

/// The patch that makes `new` of `old`. Members of `new` that are null are taken for absent, as readers of the reports do.
pub(crate) fn between(old: &Value, new: &Value) -> Value {
    let (Value::Object(old), Value::Object(new)) = (old, new) else { return new.clone() };
    let mut patch = Map::new();
    for (key, value) in new {
        match old.get(key) {
            Some(known) if known == value => {}
            Some(known) => {
                patch.insert(key.clone(), between(known, value));
            }
            None if value.is_null() => {}
            None => {
                patch.insert(key.clone(), value.clone());
            }
        }
    }
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    Value::Object(patch)
}

/// Applies a patch.
pub(crate) fn apply(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(target) = target else { return };
    for (key, value) in patch {
        if value.is_null() {
            target.remove(&key);
        } else {
            apply(target.entry(key).or_insert(Value::Null), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// JSON without nulls inside: what patches can carry.
    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![any::<bool>().prop_map(Value::from), any::<i32>().prop_map(Value::from)];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::hash_map("[a-d]", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_patch_makes_the_new_of_the_old(old in json(), new in json()) {
            let mut made = old.clone();
            apply(&mut made, between(&old, &new));
            prop_assert_eq!(made, new);
        }
    }

    #[test]
    fn what_did_not_change_does_not_travel() {
        let old = serde_json::json!({ "running": { "a": 1, "b": [1, 2], "gone": 3 } });
        let new = serde_json::json!({ "running": { "a": 2, "b": [1, 2], "none": null } });
        assert_eq!(between(&old, &new), serde_json::json!({ "running": { "a": 2, "gone": null } }));
    }
}
