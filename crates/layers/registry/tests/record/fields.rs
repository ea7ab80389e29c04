//! The list of fields in docs/record.md, from the schema: the comments in the code are its only source.

use std::collections::{BTreeMap, VecDeque};

use serde_json::Value;

/// Line of the page after which all text is made from the schema.
pub(super) const START: &str =
    "<!-- From here on made from the schema: UPDATE_SCHEMA=1 cargo test -p registry -->\n";

/// One section a type, in the order in which they are first referred to.
pub(super) fn markdown(schema: &Value) -> String {
    let mut page = section("Record", schema);
    let mut queue = VecDeque::from(references(&schema["properties"]));
    let mut seen: Vec<String> = vec![];
    while let Some(name) = queue.pop_front() {
        if seen.contains(&name) {
            continue;
        }
        let definition = &schema["$defs"][&name];
        page += &section(&name, definition);
        queue.extend(references(definition));
        seen.push(name);
    }
    page
}

/// Names of the types that a part of the schema refers to, in the order of the fields.
fn references(part: &Value) -> Vec<String> {
    match part {
        // In order of names, whatever order the map keeps.
        Value::Object(map) => map
            .iter()
            .collect::<BTreeMap<_, _>>()
            .into_iter()
            .filter(|(key, _)| *key != "$defs")
            .flat_map(|(key, value)| match (key.as_str(), value.as_str()) {
                ("$ref", Some(path)) => vec![name_of(path)],
                _ => references(value),
            })
            .collect(),
        Value::Array(list) => list.iter().flat_map(references).collect(),
        _ => vec![],
    }
}

fn name_of(path: &str) -> String {
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

/// One line: a table cell has no room for more.
fn description(part: &Value) -> String {
    let text = part["description"].as_str().unwrap_or_default().replace("\n\n", " ").replace('\n', " ");
    text.replace("[`", "`").replace("`]", "`").replace("`None`", "null").replace('|', "\\|")
}

fn section(name: &str, part: &Value) -> String {
    let mut text = format!("\n### {name}\n\n{}\n", description(part));
    if let Some(fields) = part["properties"].as_object() {
        text += "\n| field | type | meaning |\n|---|---|---|\n";
        for (field, value) in fields.iter().collect::<BTreeMap<_, _>>() {
            text += &format!("| `{field}` | {} | {} |\n", type_of(value), description(value));
        }
    } else if let Some(variants) = part["oneOf"].as_array() {
        text += "\n| value | meaning |\n|---|---|\n";
        for variant in variants {
            for value in values_of(variant) {
                text += &format!("| {value} | {} |\n", description(variant));
            }
        }
    } else {
        text += &format!("\nA {}.\n", type_of(part));
    }
    text
}

/// The values of a variant: a word, several, or an object with one field.
fn values_of(variant: &Value) -> Vec<String> {
    let quoted = |value: &Value| format!("`{value}`");
    if let Some(words) = variant["enum"].as_array() {
        return words.iter().map(quoted).collect();
    }
    if let Some(tags) = variant["properties"].as_object().filter(|_| variant["$ref"].is_string()) {
        let tag = |(field, value): (&String, &Value)| {
            format!("`{{\"{field}\": {}, ...}}` with the fields of {}", value["const"], type_of(variant))
        };
        return tags.iter().map(tag).collect();
    }
    match variant["properties"].as_object() {
        Some(fields) => fields
            .iter()
            .map(|(field, value)| format!("`{{\"{field}\": ...}}` with {}", type_of(value)))
            .collect(),
        None => vec![quoted(&variant["const"])],
    }
}

fn type_of(value: &Value) -> String {
    if let Some(path) = value["$ref"].as_str() {
        let name = name_of(path);
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(choices) = value["anyOf"].as_array() {
        return choices.iter().map(type_of).collect::<Vec<_>>().join(" or ");
    }
    let single = |name: &str| match name {
        "array" if value["prefixItems"].is_array() => {
            let parts: Vec<_> = value["prefixItems"].as_array().into_iter().flatten().map(type_of).collect();
            format!("list of {}", parts.join(" and "))
        }
        "array" => format!("list of {}", type_of(&value["items"])),
        name => name.to_owned(),
    };
    match &value["type"] {
        Value::String(name) => single(name),
        Value::Array(names) => {
            names.iter().filter_map(Value::as_str).map(single).collect::<Vec<_>>().join(" or ")
        }
        _ => "any".to_owned(),
    }
}
