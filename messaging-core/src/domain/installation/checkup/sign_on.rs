//! The single sign-on provider.

use super::{CheckId, CheckReport, LookUp, Looked, listed};
use crate::ids::WorkspaceId;

/// Judges whether the provider answers, and whether the workspaces are there that its groups open.
pub fn judge_sign_on(issuer: &str, found: &LookUp<()>, missing: &[WorkspaceId]) -> CheckReport {
    let looked = Looked::at(CheckId::Oidc, issuer, "a provider that answers with its document and its keys");
    match found {
        Err(reason) => looked.found(format!("no usable answer ({reason})")).fault(
            format!("People cannot sign in by single sign-on: {reason}."),
            "compare --oidc-issuer with the issuer that the provider names, and check that this machine reaches it; a \
             provider at a private address needs --allow-private-targets",
        ),
        Ok(()) if missing.is_empty() => looked.found("document and keys").ok("The provider answers."),
        Ok(()) => looked.found("document and keys").warning(
            format!("The provider answers, but --oidc-map names workspaces that do not exist: {}.", listed(missing)),
            "remove them from --oidc-map or correct them; `messaging admin list-workspaces` shows the ids",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::installation::checkup::CheckStatus;
    use crate::ids::Id as _;

    #[test]
    fn a_provider_that_does_not_answer_keeps_people_out() {
        let judged = |found: LookUp<()>, missing: &[WorkspaceId]| judge_sign_on("https://id.test", &found, missing);
        assert_eq!(judged(Ok(()), &[]).status, CheckStatus::Ok);
        let down = judged(Err("the name does not resolve".to_owned()), &[]);
        assert_eq!((down.status, down.subject.as_str()), (CheckStatus::Fault, "https://id.test"));
        assert!(down.text.contains("the name does not resolve") && down.cure.contains("--allow-private-targets"));
        let gone = WorkspaceId::from_bytes([1; 16]);
        let warned = judged(Ok(()), &[gone]);
        assert_eq!(warned.status, CheckStatus::Warning);
        assert!(warned.text.contains(&gone.to_string()));
    }
}
