use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;

use super::server::Inherit;

/// What every server may see of its parent's environment: the list of the MCP SDKs.
const SAFE: [&str; 6] = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"];

/// Makes Python servers speak UTF-8 whatever the locale says.
const PYTHON_UTF8: &str = "PYTHONUTF8";

/// The environment of one server: each name once, in the order of the names. Holds secrets.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
}

impl Environment {
    pub(super) fn compose(
        parent: impl IntoIterator<Item = (OsString, OsString)>,
        inherit: &Inherit,
        given: &[(OsString, OsString)],
    ) -> Self {
        let mut variables = BTreeMap::new();
        if *inherit != Inherit::None {
            let inherited = parent.into_iter().filter(|(name, value)| {
                is_passed_on(name, inherit)
                    && is_usable(name, value)
                    && !is_shell_function(name, value)
            });
            variables.extend(inherited);
        }
        variables.extend(given.iter().cloned());
        variables
            .entry(PYTHON_UTF8.into())
            .or_insert_with(|| "1".into());
        Self { variables }
    }

    /// The value of a variable.
    #[must_use]
    pub fn get(&self, name: &OsStr) -> Option<&OsStr> {
        self.variables.get(name).map(OsString::as_os_str)
    }

    /// All variables, in the order of their names.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&OsStr, &OsStr)> {
        self.variables
            .iter()
            .map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// How many variables there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.variables.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.variables.is_empty()
    }
}

/// Without the variables: they hold secrets.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Environment({} variables)", self.len())
    }
}

fn is_passed_on(name: &OsStr, inherit: &Inherit) -> bool {
    match inherit {
        Inherit::All => true,
        Inherit::None => false,
        Inherit::Safe(extra) => {
            SAFE.iter().any(|safe| name == *safe)
                || extra
                    .iter()
                    .any(|pattern| matches(pattern.as_encoded_bytes(), name.as_encoded_bytes()))
        }
    }
}

/// Some parents hold entries that no program can be given.
fn is_usable(name: &OsStr, value: &OsStr) -> bool {
    let (name, value) = (name.as_encoded_bytes(), value.as_encoded_bytes());
    !name.is_empty() && !name.contains(&b'=') && !name.contains(&0) && !value.contains(&0)
}

/// Functions that a shell exported: a shell below the server would run them.
fn is_shell_function(name: &OsStr, value: &OsStr) -> bool {
    value.as_encoded_bytes().starts_with(b"()")
        || name.as_encoded_bytes().starts_with(b"BASH_FUNC_")
}

/// Whether a name fits a pattern in which `*` stands for any run of characters.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let mut parts = pattern.split(|&byte| byte == b'*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        // The first place is the best: it leaves the most for the parts that follow.
        let Some(at) = find(rest, part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    if part.is_empty() {
        return Some(0);
    }
    text.windows(part.len()).position(|window| window == part)
}

#[cfg(test)]
#[path = "environment_tests.rs"]
mod tests;
