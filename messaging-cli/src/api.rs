//! One command for every operation: read the arguments, carry the request out, print the answer.

use clap::ArgMatches;
use http::Method;
use messaging_engine::ops::channels::try_out::TestChannel;
use messaging_engine::ops::{Endpoint, Operation as _};
use serde_json::{Value, json};

use crate::arguments;
use crate::automations;
use crate::campaign_watch;
use crate::command::operation;
use crate::domain_wait;
use crate::export;
use crate::failure::Failure;
use crate::import;
use crate::listen;
use crate::listing;
use crate::names;
use crate::output::{self, Output};
use crate::reply::Reply;
use crate::request::Request;
use crate::request_follow;
use crate::resend;
use crate::target::{self, Target};
use crate::{templates, terminal, watch};

/// The operation whose body has the name of the deleted workspace.
const DELETE_WORKSPACE: &str = "deleteWorkspace";
/// Its body where no name was given.
const NO_NAME: &[u8] = b"{}";
/// Asks for the name.
const NAME_TO_DELETE: &str = "In seven days the workspace is removed with everything in it; until then `messaging workspace \
    restore` takes that back. Its name: ";

/// Carries out the operation that the command line names.
pub(crate) fn run(matches: &ArgMatches, output: Output) -> Result<(), Failure> {
    let mut words = Vec::new();
    let mut matches = matches;
    while let Some((word, inner)) = matches.subcommand() {
        words.push(word);
        matches = inner;
    }
    if words == watch::WORDS {
        return target::block_on(watch::run(matches, output))?;
    }
    if words == campaign_watch::WORDS {
        return target::block_on(campaign_watch::run(matches, output))?;
    }
    if words == import::WORDS {
        return target::block_on(import::run(matches, output))?;
    }
    if automations::is_ours(&words) {
        return target::block_on(automations::run(&words, matches, output))?;
    }
    if templates::is_ours(&words) {
        return target::block_on(templates::run(&words, matches, output))?;
    }
    if words == listen::WORDS {
        return target::block_on(listen::run(matches, output))?;
    }
    if words == resend::WORDS {
        return target::block_on(resend::run(matches, output))?;
    }
    if export::is_ours(&words) {
        return target::block_on(export::run(&words, matches, output))?;
    }
    let endpoint = operation::endpoint(&words).expect("the tree is made of the operations");
    let mut request = Request::read(endpoint, matches)?;
    if endpoint.id == DELETE_WORKSPACE && request.body == NO_NAME && terminal::has_somebody() {
        request.body = json!({"name": terminal::ask(NAME_TO_DELETE)?}).to_string().into();
    } else if (endpoint.method)() == Method::DELETE && !arguments::is_set(matches, arguments::YES) {
        let named: Vec<_> = request.path.iter().map(|(_, id)| output::plain_text(id)).collect();
        terminal::confirm(&format!("{}: {}?", endpoint.summary, named.join(" ")))?;
    }
    target::block_on(async {
        let target = Target::choose(matches, endpoint.access).await?;
        names::resolve(&target, &mut request, matches).await?;
        if domain_wait::is_wanted(matches) {
            return domain_wait::run(&target, &request, matches, output).await;
        }
        if request_follow::is_wanted(matches) {
            return request_follow::run(&target, &request, output).await;
        }
        if arguments::is_set(matches, arguments::ALL) {
            return listing::all(&target, request, output).await;
        }
        let reply = target.call(&request).await?;
        let failed = failed_test(endpoint, &reply);
        output.reply(reply)?;
        failed.map_or(Ok(()), Err)
    })?
    .map_err(|failure| with_way_to_session(failure, endpoint))
}

/// The failure of a test whose answer is that it did not succeed.
fn failed_test(endpoint: &Endpoint, reply: &Reply) -> Option<Failure> {
    if endpoint.id != TestChannel::ID || !reply.status.is_success() {
        return None;
    }
    let answer: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    (answer["ok"] == false).then(|| Failure::Unsuccessful("the test message was not taken".to_owned()))
}

/// A refusal because an API key is no session, with how to get one.
fn with_way_to_session(failure: Failure, endpoint: &Endpoint) -> Failure {
    let is_about_session = |reply: &Reply| {
        let error: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        error["error"]["code"] == "session_required"
    };
    if !matches!(&failure, Failure::Refused(reply) if is_about_session(reply)) {
        return failure;
    }
    let beside = match endpoint.cli.split(' ').next() {
        Some("key") => "; beside the server `messaging admin create-key`, `list-keys` and `revoke-key` need none",
        Some("member") => "; beside the server `messaging admin create-user` needs none",
        _ => "",
    };
    failure.advised(|| format!("sign in with `messaging login --url URL --email EMAIL`{beside}"))
}
