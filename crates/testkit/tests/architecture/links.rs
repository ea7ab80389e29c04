//! Links between documents.

use crate::repository::Text;

/// Links that lead nowhere. `exists` tells of a path from the root of the repository.
pub(crate) fn complaints(documents: &[Text], exists: impl Fn(&str) -> bool) -> Vec<String> {
    let mut complaints = Vec::new();
    for (path, text) in documents {
        for link in links(text) {
            if let Some(fault) = fault(path, &link, documents, &exists) {
                complaints.push(format!("{path}: {link}: {fault}"));
            }
        }
    }
    complaints
}

fn fault(from: &str, link: &str, documents: &[Text], exists: &impl Fn(&str) -> bool) -> Option<&'static str> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
    let path = if file.is_empty() { Some(from.to_owned()) } else { resolve(from, file) };
    let Some(path) = path else { return Some("it leads out of the repository") };
    if !exists(&path) {
        return Some("there is no such file");
    }
    let (_, text) = documents.iter().find(|(known, _)| *known == path)?;
    let anchor = anchor?;
    if headings(text).iter().any(|heading| heading == anchor) {
        None
    } else {
        Some("there is no such heading")
    }
}

/// `link` in a document at `from`, as a path from the root.
fn resolve(from: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// Text without fenced blocks and code spans.
fn prose(text: &str) -> String {
    let mut prose = String::new();
    let mut fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            let outside = line.split('`').step_by(2);
            outside.for_each(|part| prose.push_str(part));
            prose.push('\n');
        }
    }
    prose
}

/// Targets of `[text](target)` and `[name]: target`.
fn links(text: &str) -> Vec<String> {
    let prose = prose(text);
    let inline = prose.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
    let references = prose.lines().filter(|line| line.starts_with('['));
    let references = references.filter_map(|line| line.split_once("]: ")).map(|(_, target)| target.trim());
    inline.chain(references).map(str::to_owned).collect()
}

/// Anchors of the headings, as the forges make them.
fn headings(text: &str) -> Vec<String> {
    let mut fenced = false;
    let mut anchors: Vec<String> = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        let title = line.trim_start_matches('#');
        if fenced || title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let kept = title
            .trim()
            .to_lowercase()
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
            .collect::<String>();
        let anchor = kept.replace(' ', "-");
        let before = anchors.iter().filter(|known| **known == anchor).count();
        anchors.push(if before == 0 { anchor } else { format!("{anchor}-{before}") });
    }
    anchors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let documents =
            [("docs/a.md".to_owned(), text.to_owned()), ("b.md".to_owned(), "# The `B` side\n".to_owned())];
        complaints(&documents, |path| ["docs/a.md", "b.md", "docs", "src/x.rs"].contains(&path))
    }

    #[test]
    fn good_links_pass() {
        let text = "# Top\n[b](../b.md) [h](../b.md#the-b-side) [t](#top) [x](../src/x.rs) [w](https://x.y/z)\n`[c](no.md)`\n```\n[d](no.md)\n```\n";
        assert_eq!(found(text), [] as [String; 0]);
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        assert_eq!(found("[b](b.md)"), ["docs/a.md: b.md: there is no such file"]);
        assert_eq!(found("[b](../b.md#c)"), ["docs/a.md: ../b.md#c: there is no such heading"]);
        assert_eq!(found("[b](../../b.md)"), ["docs/a.md: ../../b.md: it leads out of the repository"]);
        assert_eq!(found("[b]: no.md"), ["docs/a.md: no.md: there is no such file"]);
    }
}
