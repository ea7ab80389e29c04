//! Object classes, by the tool's names and by those of DAOS.

use driver::Error;

use super::settings::option;
use crate::words::{Table, quoted};

/// Object classes by the tool's names, and by those of DAOS.
const CLASSES: &[(&str, &str)] = &[
    ("TINY", "S1"),
    ("LARGE", "SX"),
    ("R2S", "RP_2G1"),
    ("R3S", "RP_3G1"),
    ("R4S", "RP_4G1"),
    ("EC2P1", "EC_2P1G1"),
    ("EC2P2", "EC_2P2G1"),
    ("EC4P2", "EC_4P2G1"),
    ("EC8P2", "EC_8P2G1"),
];

/// An object class by the tool's names, or by those of DAOS.
pub(crate) fn parse(table: &Table, text: &str) -> Result<String, Error> {
    let upper = text.to_ascii_uppercase();
    if let Some((_, class)) = CLASSES.iter().find(|(name, _)| *name == upper) {
        return Ok((*class).to_owned());
    }
    option(table, "class", text).map_err(|_| {
        table.error(
            format!("-c/--class: {} is not an object class", quoted(text)),
            "use one of TINY, LARGE, R2S, R3S, R4S, EC2P1, EC2P2, EC4P2, EC8P2, or a class such as RP_2GX",
        )
    })?;
    // Numbers as DAOS writes them.
    let mut class = String::new();
    for sign in upper.chars() {
        let is_filler = matches!(sign, '0' | '+') && !class.ends_with(|last: char| last.is_ascii_digit());
        if !is_filler {
            class.push(sign);
        }
    }
    Ok(class)
}

/// Name of a class in daos_perf.
pub(crate) fn text(class: &str, is_echo: bool) -> String {
    if is_echo {
        return "ECHO TINY (network only, non-replica)".to_owned();
    }
    let copies = class.strip_prefix("RP_").and_then(|rest| rest.strip_suffix("G1"));
    let cells = class.strip_prefix("EC_").and_then(|rest| rest.split_once('G')?.0.split_once('P'));
    match (class, copies, cells) {
        ("S1", ..) => "DAOS TINY (full stack, non-replica)".to_owned(),
        ("SX", ..) => "DAOS LARGE (full stack, non-replica)".to_owned(),
        // The tools' own spelling.
        ("RP_4G1", ..) => "DAOS R4S (full stack, 4 replics)".to_owned(),
        (_, Some(copies), _) => format!("DAOS R{copies}S (full stack, {copies} replica)"),
        (_, _, Some((data, parity))) => format!("DAOS OC_{class} (full stack {data}+{parity} EC)"),
        _ => format!("DAOS {class} (full stack)"),
    }
}
