//! Job files: TOML with the options' names as keys (`block_size = "4k"`), `targets`, and a `[[phase]]` table for each phase. Keys
//! outside the phases hold for all of them. `layer = "NAME"` makes a phase one of that layer, with the options of that layer; keys outside the phases then hold for the phases whose layer has them.

use toml::{Table, Value};
use units::ParseError;

use crate::options;
use crate::plan::PlanError;
use crate::spec::{Layer, Spec};

/// Phases that one job may have.
const PHASES_MAX: usize = 1000;

/// Reads a job file into one spec a phase.
///
/// # Errors
/// One line that names the line or phase and the key, and says what would be accepted.
pub fn parse(text: &str) -> Result<Vec<Spec>, PlanError> {
    let table: Table =
        text.parse().map_err(|error: toml::de::Error| PlanError(syntax_error(text, &error)))?;
    let mut common = Table::new();
    let mut phases = Vec::new();
    for (key, value) in table {
        match (key.as_str(), value) {
            ("phase", Value::Array(list)) => phases = list,
            ("phase", _) => {
                return Err(PlanError("job: phase must be written as [[phase]] tables".to_owned()));
            }
            (_, value) => {
                common.insert(key, value);
            }
        }
    }
    if phases.len() > PHASES_MAX {
        return Err(PlanError(format!(
            "job: {} phases are too many: use at most {PHASES_MAX}",
            phases.len()
        )));
    }
    let layer = layer_of(&common, Layer::default()).map_err(|error| PlanError(format!("job: {error}")))?;
    if phases.is_empty() {
        let alone = common_spec(&common, layer, &[layer], &Table::new())?;
        return Ok(vec![alone]);
    }
    let phases = phases.iter().enumerate().map(|(at, phase)| {
        let Value::Table(phase) = phase else {
            return Err(PlanError(format!("job: phase {} is not a table: write [[phase]]", at + 1)));
        };
        let layer =
            layer_of(phase, layer).map_err(|error| PlanError(format!("job: phase {}: {error}", at + 1)))?;
        Ok((layer, phase))
    });
    let phases: Vec<(Layer, &Table)> = phases.collect::<Result<_, _>>()?;
    let layers: Vec<Layer> = phases.iter().map(|(layer, _)| *layer).collect();
    for &layer in &layers {
        // Keys that every phase has anew are read all the same.
        common_spec(&common, layer, &layers, &Table::new())?;
    }
    let numbered = phases.iter().enumerate();
    let specs = numbered.map(|(at, (layer, phase))| {
        let spec = common_spec(&common, *layer, &layers, phase)?;
        parse_phase(spec, at + 1, phase)
    });
    specs.collect()
}

fn layer_of(table: &Table, default: Layer) -> Result<Layer, ParseError> {
    match table.get("layer") {
        None => Ok(default),
        Some(value) => Layer::named(&scalar(value)?),
    }
}

/// Keys outside the phases, as a spec, for a phase of `layer` that does not give them itself. One that only another of the `layers` in use
/// has is not for this phase.
fn common_spec(common: &Table, layer: Layer, layers: &[Layer], phase: &Table) -> Result<Spec, PlanError> {
    let flag = |key: &str| key.replace('_', "-");
    let mut spec = Spec { layer, ..Spec::default() };
    for (key, value) in common {
        let is_known = |layer| options::find_in(layer, key).is_some();
        let is_of_others = !is_known(layer) && layers.iter().any(|&other| is_known(other));
        let is_said_anew = phase.keys().any(|own| flag(own) == flag(key));
        if !is_of_others && !is_said_anew {
            set(&mut spec, key, value).map_err(|error| PlanError(format!("job: {key}: {error}")))?;
        }
    }
    Ok(spec)
}

fn parse_phase(mut spec: Spec, number: usize, phase: &Table) -> Result<Spec, PlanError> {
    for (key, value) in phase {
        set(&mut spec, key, value)
            .map_err(|error| PlanError(format!("job: phase {number}: {key}: {error}")))?;
    }
    Ok(spec)
}

fn syntax_error(text: &str, error: &toml::de::Error) -> String {
    let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
    let message: String = error.message().lines().next().unwrap_or("not TOML").to_owned();
    format!("job: line {line}: {message}")
}

fn set(spec: &mut Spec, key: &str, value: &Value) -> Result<(), ParseError> {
    if key == "layer" {
        return Ok(());
    }
    if key == "targets" {
        let Value::Array(list) = value else {
            return Err(ParseError::new(
                "a list of targets",
                value,
                "an array of strings such as [\"/data/file\"]",
            ));
        };
        let path = |item: &Value| item.as_str().map(str::to_owned);
        spec.targets = list.iter().map(path).collect::<Option<_>>().ok_or_else(|| {
            ParseError::new("a list of targets", value, "an array of strings such as [\"/data/file\"]")
        })?;
        return Ok(());
    }
    match value {
        Value::Array(list) if options::is_repeatable(key) => {
            list.iter().try_for_each(|item| options::apply(spec, key, &scalar(item)?))
        }
        _ => options::apply(spec, key, &scalar(value)?),
    }
}

/// A TOML value as the text that the command line would carry.
fn scalar(value: &Value) -> Result<String, ParseError> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Float(number) => Ok(number.to_string()),
        Value::Boolean(flag) => Ok(flag.to_string()),
        Value::Array(list) => {
            list.iter().map(scalar).collect::<Result<Vec<_>, _>>().map(|items| items.join(","))
        }
        Value::Datetime(_) | Value::Table(_) => {
            Err(ParseError::new("a value", value, "a string, a number, true, false or an array of these"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_inherit_and_override() {
        let specs = parse(
            "targets = ['/a']\nblock_size = '4k'\nthreads = 2\nverify = true\n[[phase]]\npattern = 'backward'\n[[phase]]\npattern = 'uniform'\nthreads = 4\ncores = [0, 1]\n",
        )
        .expect("job");
        assert_eq!(specs.len(), 2);
        assert_eq!(specs[0].pattern.as_deref(), Some("backward"));
        assert_eq!((specs[0].threads, specs[1].threads), (Some(2), Some(4)));
        assert_eq!(specs[1].cores.as_deref(), Some(&[0, 1][..]));
        assert!(specs.iter().all(|spec| spec.targets == ["/a"] && spec.verify));
    }

    #[test]
    fn errors_name_the_place() {
        let message = |text: &str| parse(text).expect_err("refused").to_string();
        assert!(message("x = [").starts_with("job: line 1: "));
        assert!(
            message("seed = 1\n[[phase]]\ndepht = 3").contains("phase 1: depht: "),
            "{}",
            message("[[phase]]\ndepht = 3")
        );
        assert!(message("[[phase]]\ndepht = 3").contains("depth (the closest match)"));
        assert!(message("block_size = '1zz'").contains("block_size: \"1zz\""));
        assert!(message("phase = 3").contains("[[phase]]"));
    }
}
