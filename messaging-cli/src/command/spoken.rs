//! Rewrites requests in texts of the API as commands: `POST /messages` becomes `messaging message send`.

use messaging_engine::ops::{self, Endpoint};

/// HTTP methods that begin a request in texts of the API.
const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/// Prefix of paths within a workspace, and its abbreviation in texts.
const IN_WORKSPACE: [&str; 2] = ["/workspaces/{workspace_id}/", "…/"];

/// Replaces each request that a text of the API names by its command. Requests that match no operation are left alone.
pub(crate) fn in_commands(text: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match words.last().and_then(|method| request(method, word)) {
            Some(command) => {
                words.pop();
                words.push(command);
            }
            None => words.push(word.to_owned()),
        }
    }
    words.join(" ")
}

/// Returns the command for an operation id, with its path parameters as arguments; `None` if the id is unknown or the
/// path is another operation's.
pub(crate) fn command_of(operation: &str, path: &str) -> Option<String> {
    let endpoint = ops::all().iter().find(|endpoint| endpoint.id == operation)?;
    Some(command(endpoint, &parameters(endpoint, path)?))
}

/// Returns the parameters of a path; `None` if it is not a path of this operation.
pub(crate) fn parameters(endpoint: &Endpoint, path: &str) -> Option<Vec<(String, String)>> {
    let (wanted, given) = (endpoint.path.split('/'), path.split('/'));
    if wanted.clone().count() != given.clone().count() {
        return None;
    }
    let mut found = Vec::new();
    for (wanted, given) in wanted.zip(given) {
        match wanted.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
            Some(name) if !given.is_empty() => found.push((name.to_owned(), given.to_owned())),
            None if wanted == given => {}
            _ => return None,
        }
    }
    Some(found)
}

/// Returns the command for a method and a path, in backticks with the punctuation around; `None` for other words.
fn request(method: &str, path: &str) -> Option<String> {
    let is_mark = |character: char| "`(),;.:".contains(character);
    let (before, method) = method.split_at(method.len() - method.trim_start_matches(is_mark).len());
    if !METHODS.contains(&method) {
        return None;
    }
    let bare = path.trim_end_matches(is_mark);
    let after = path[bare.len()..].trim_start_matches('`');
    let [whole, short] = IN_WORKSPACE;
    let path = match bare.strip_prefix(short) {
        Some(rest) => format!("{whole}{rest}"),
        None => bare.to_owned(),
    };
    let mut found = ops::all().iter().filter(|endpoint| (endpoint.method)().as_str() == method);
    let command = found.find_map(|endpoint| Some(command(endpoint, &parameters(endpoint, &path)?)))?;
    Some(format!("{}`{command}`{after}", before.trim_end_matches('`')))
}

/// Returns the command of an operation with its path parameters as arguments, the workspace left out.
fn command(endpoint: &Endpoint, parameters: &[(String, String)]) -> String {
    let mut command = format!("messaging {}", endpoint.cli);
    for (_, value) in parameters.iter().filter(|(name, _)| name != "workspace_id") {
        command.push(' ');
        match value.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
            Some(name) => command.push_str(&name.to_uppercase()),
            None => command.push_str(value),
        }
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_become_commands() {
        for (text, expected) in [
            (
                "publish the records that GET /workspaces/wsp_1/sending-domains/dom_1/records shows, then POST \
                 /workspaces/wsp_1/sending-domains/dom_1/verify",
                "publish the records that `messaging domain records dom_1` shows, then `messaging domain verify dom_1`",
            ),
            ("set one with PUT …/channels/{channel}", "set one with `messaging channel set CHANNEL`"),
            ("in the members of `POST /messages`.", "in the members of `messaging message send`."),
            ("(see GET /messages, say)", "(see `messaging message list`, say)"),
            ("POST /nowhere and GET it", "POST /nowhere and GET it"),
            ("nothing", "nothing"),
            ("", ""),
        ] {
            assert_eq!(in_commands(text), expected);
        }
    }

    #[test]
    fn operations_become_commands() {
        let path = "/workspaces/wsp_1/sending-domains/dom_1/verify";
        assert_eq!(command_of("verifySendingDomain", path).as_deref(), Some("messaging domain verify dom_1"));
        assert_eq!(command_of("verifySendingDomain", "/other"), None);
        assert_eq!(command_of("nothing", path), None);
    }
}
