//! Job files: TOML with the options' names as keys (`block_size = "4k"`), `targets`, and a `[[phase]]` table for each phase. Keys
//! outside the phases hold for all of them.

use toml::{Table, Value};
use units::ParseError;

use crate::options;
use crate::plan::PlanError;
use crate::spec::Spec;

/// Phases that one job may have.
const PHASES_MAX: usize = 1000;

/// Reads a job file into one spec a phase.
///
/// # Errors
/// One line that names the line or phase and the key, and says what would be accepted.
pub fn parse(text: &str) -> Result<Vec<Spec>, PlanError> {
    let table: Table =
        text.parse().map_err(|error: toml::de::Error| PlanError(syntax_error(text, &error)))?;
    let mut common = Spec::default();
    let mut phases = Vec::new();
    for (key, value) in &table {
        match (key.as_str(), value) {
            ("phase", Value::Array(list)) => phases = list.iter().collect(),
            ("phase", _) => {
                return Err(PlanError("job: phase must be written as [[phase]] tables".to_owned()));
            }
            _ => set(&mut common, key, value).map_err(|error| PlanError(format!("job: {key}: {error}")))?,
        }
    }
    if phases.len() > PHASES_MAX {
        return Err(PlanError(format!(
            "job: {} phases are too many: use at most {PHASES_MAX}",
            phases.len()
        )));
    }
    if phases.is_empty() {
        return Ok(vec![common]);
    }
    phases.iter().enumerate().map(|(number, phase)| parse_phase(&common, number + 1, phase)).collect()
}

fn parse_phase(common: &Spec, number: usize, phase: &Value) -> Result<Spec, PlanError> {
    let Value::Table(table) = phase else {
        return Err(PlanError(format!("job: phase {number} is not a table: write [[phase]]")));
    };
    let mut spec = common.clone();
    for (key, value) in table {
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
    options::apply(spec, key, &scalar(value)?)
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
    use crate::spec::Operation;

    #[test]
    fn phases_inherit_and_override() {
        let specs = parse(
            "targets = ['/a']\nblock_size = '4k'\nthreads = 2\ndirect = true\n[[phase]]\nop = 'write'\n[[phase]]\nop = 'randread'\nthreads = 4\ncores = [0, 1]\n",
        )
        .expect("job");
        assert_eq!(specs.len(), 2);
        assert_eq!(specs[0].operations, [Operation::Write]);
        assert_eq!((specs[0].threads, specs[1].threads), (Some(2), Some(4)));
        assert_eq!(specs[1].cores.as_deref(), Some(&[0, 1][..]));
        assert!(specs.iter().all(|spec| spec.targets == ["/a"] && spec.direct == Some(true)));
    }

    #[test]
    fn errors_name_the_place() {
        let message = |text: &str| parse(text).expect_err("refused").to_string();
        assert!(message("x = [").starts_with("job: line 1: "));
        assert!(
            message("op = 'write'\n[[phase]]\ndepht = 3").contains("phase 1: depht: "),
            "{}",
            message("[[phase]]\ndepht = 3")
        );
        assert!(message("[[phase]]\ndepht = 3").contains("depth (the nearest there is)"));
        assert!(message("block_size = '1zz'").contains("block_size: \"1zz\""));
        assert!(message("phase = 3").contains("[[phase]]"));
    }
}
