//! Finds the operation of a method and path.
//!
//! Contract section 1.1: the operations answer under `/v1` and `/api/v1` alike; a few paths answer at the root of the
//! server, those of contract section 18 among them. Each of these has a separate [`Target`].

use http::Method;
use messaging_engine::Error;
use messaging_engine::ops::{self, Endpoint};
use percent_encoding::percent_decode_str;

use crate::archive::ArchiveRoute;
use crate::callbacks::CallbackRoute;
use crate::console;
use crate::drop_in::DropIn;
use crate::images;
use crate::readers::ReaderRoute;
use crate::single_sign_on::SignOnRoute;
use crate::uploads;
use crate::visits::Visit;

/// The prefixes of the operations.
const BASES: [&str; 2] = ["/v1", "/api/v1"];

/// The path prefix of the operations of version 1, as documents write it.
pub(crate) const BASE: &str = BASES[0];

/// The handler that a request is routed to.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    /// An operation.
    Operation(&'static Endpoint),
    /// The OpenAPI document.
    OpenApi,
    /// The reference page.
    Docs,
    /// A link in a message.
    Visit(Visit),
    /// A page for readers.
    Reader(ReaderRoute),
    /// A page of an archive.
    Archive(ArchiveRoute),
    /// A link to upload a file.
    Upload,
    /// An image of a mail.
    Image,
    /// An address that a provider calls.
    Callback(CallbackRoute),
    /// A send call of another service.
    DropIn(DropIn),
    /// Single sign-on in a browser.
    SignOn(SignOnRoute),
    /// The console and its files.
    Console,
}

impl Target {
    /// The path for logs and metrics: the template, never the requested path.
    pub(crate) fn route(self) -> &'static str {
        match self {
            Self::Operation(endpoint) => endpoint.path,
            Self::OpenApi => "/openapi.json",
            Self::Docs => "/docs",
            Self::Visit(visit) => visit.route(),
            Self::Reader(route) => route.route(),
            Self::Archive(route) => route.route(),
            Self::Upload => uploads::ROUTE,
            Self::Image => images::ROUTE,
            Self::Callback(callback) => callback.route(),
            Self::DropIn(drop_in) => drop_in.route(),
            Self::SignOn(route) => route.route(),
            Self::Console => console::ROUTE,
        }
    }
}

/// The number of a [`Target`], for counting.
pub(crate) type Slot = usize;

/// The table of paths; built once.
#[derive(Debug)]
pub(crate) struct Router {
    below_base: matchit::Router<Path>,
    at_root: matchit::Router<Path>,
    targets: Vec<(Method, Target)>,
}

/// The methods of one path, each with the number of its target.
#[derive(Debug, Default)]
struct Path {
    methods: Vec<(Method, Slot)>,
    allow: String,
}

/// Route of a request.
#[derive(Debug)]
pub(crate) struct RouteMatch<'p> {
    /// The handler of the request.
    pub(crate) target: Target,
    /// The slot of the handler, for counting.
    pub(crate) slot: Slot,
    /// The path below the version prefix, as it was requested.
    pub(crate) path: &'p str,
    /// The parameters of the path, percent-decoded.
    pub(crate) parameters: Vec<(String, String)>,
}

impl Router {
    /// The table of every operation and document.
    pub(crate) fn new(has_console: bool) -> Self {
        let mut below_base = Table::default();
        let mut at_root = Table::default();
        let mut targets = Vec::new();
        for endpoint in ops::all() {
            let slot = targets.len();
            targets.push(((endpoint.method)(), Target::Operation(endpoint)));
            below_base.add(endpoint.path, (endpoint.method)(), slot);
            if endpoint.path == "/health" {
                at_root.add(endpoint.path, (endpoint.method)(), slot);
            }
        }
        for (table, target) in [(&mut below_base, Target::OpenApi), (&mut at_root, Target::Docs)] {
            table.add(target.route(), Method::GET, targets.len());
            targets.push((Method::GET, target));
        }
        for route in SignOnRoute::ALL {
            below_base.add(route.route(), Method::GET, targets.len());
            targets.push((Method::GET, Target::SignOn(route)));
        }
        for visit in Visit::ALL {
            at_root.add(visit.route(), visit.method(), targets.len());
            targets.push((visit.method(), Target::Visit(visit)));
        }
        for route in ReaderRoute::ALL {
            at_root.add(route.route(), route.method(), targets.len());
            targets.push((route.method(), Target::Reader(route)));
        }
        for route in ArchiveRoute::ALL {
            at_root.add(route.route(), ArchiveRoute::METHOD, targets.len());
            targets.push((ArchiveRoute::METHOD, Target::Archive(route)));
        }
        for callback in CallbackRoute::ALL {
            at_root.add(callback.route(), callback.method(), targets.len());
            targets.push((callback.method(), Target::Callback(callback)));
        }
        for drop_in in DropIn::ALL {
            at_root.add(drop_in.route(), Method::POST, targets.len());
            targets.push((Method::POST, Target::DropIn(drop_in)));
        }
        at_root.add(uploads::ROUTE, uploads::METHOD, targets.len());
        targets.push((uploads::METHOD, Target::Upload));
        at_root.add(images::ROUTE, images::METHOD, targets.len());
        targets.push((images::METHOD, Target::Image));
        if has_console {
            for path in console::PATHS {
                at_root.add(path, Method::GET, targets.len());
            }
            targets.push((Method::GET, Target::Console));
        }
        Self { below_base: below_base.finish(), at_root: at_root.finish(), targets }
    }

    /// Every target with its method, by slot.
    pub(crate) fn targets(&self) -> &[(Method, Target)] {
        &self.targets
    }

    /// Finds the handler of a request (check 1 of contract section 1.3).
    pub(crate) fn find<'p>(&self, method: &Method, path: &'p str) -> Result<RouteMatch<'p>, Error> {
        let below = BASES.iter().find_map(|base| path.strip_prefix(base).filter(|rest| rest.starts_with('/')));
        let (table, path) = match below {
            Some(below) => (&self.below_base, below),
            None => (&self.at_root, path),
        };
        let matched = table.at(path).map_err(|_| Error::RouteNotFound)?;
        // HEAD is a GET whose body is not sent; hyper leaves it out.
        let wanted = if method == Method::HEAD { &Method::GET } else { method };
        let Some((_, slot)) = matched.value.methods.iter().find(|(method, _)| method == wanted) else {
            return Err(Error::MethodNotAllowed { allow: matched.value.allow.clone() });
        };
        let decode = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let parameters = matched.params.iter().map(|(name, value)| (name.to_owned(), decode(value))).collect();
        Ok(RouteMatch { target: self.targets[*slot].1, slot: *slot, path, parameters })
    }
}

/// Paths while the table is built: matchit accepts each only once.
#[derive(Debug, Default)]
struct Table(Vec<(&'static str, Path)>);

impl Table {
    fn add(&mut self, path: &'static str, method: Method, slot: Slot) {
        let at = self.0.iter().position(|(known, _)| *known == path).unwrap_or_else(|| {
            self.0.push((path, Path::default()));
            self.0.len() - 1
        });
        self.0[at].1.methods.push((method, slot));
    }

    fn finish(self) -> matchit::Router<Path> {
        let mut router = matchit::Router::new();
        for (path, mut entry) in self.0 {
            let mut names: Vec<_> = entry.methods.iter().map(|(method, _)| method.as_str()).collect();
            if names.contains(&"GET") {
                names.push("HEAD");
            }
            names.sort_unstable();
            entry.allow = names.join(", ");
            router.insert(path, entry).expect("the paths of the contract do not overlap");
        }
        router
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(method: &Method, path: &str, expected: &str) {
        let found = match Router::new(true).find(method, path) {
            Ok(found) => {
                let parameters: Vec<_> =
                    found.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
                format!("{} {} [{}]", found.target.route(), found.path, parameters.join(","))
            }
            Err(Error::MethodNotAllowed { allow }) => format!("allow {allow}"),
            Err(error) => error.code().to_owned(),
        };
        assert_eq!(found, expected, "{method} {path}");
    }

    #[test]
    fn both_prefixes_lead_to_the_same_operations() {
        check(&Method::GET, "/v1/workspaces", "/workspaces /workspaces []");
        check(&Method::GET, "/api/v1/workspaces", "/workspaces /workspaces []");
        check(&Method::GET, "/workspaces", "route_not_found");
        check(&Method::GET, "/v2/workspaces", "route_not_found");
        check(&Method::GET, "/v1workspaces", "route_not_found");
        check(&Method::GET, "/v1", "route_not_found");
        check(&Method::GET, "/v1/workspaces/", "route_not_found");
    }

    #[test]
    fn health_and_docs_answer_at_the_root() {
        check(&Method::GET, "/health", "/health /health []");
        check(&Method::GET, "/v1/health", "/health /health []");
        check(&Method::HEAD, "/health", "/health /health []");
        check(&Method::GET, "/docs", "/docs /docs []");
        check(&Method::GET, "/v1/docs", "route_not_found");
        check(&Method::GET, "/v1/openapi.json", "/openapi.json /openapi.json []");
        check(&Method::GET, "/openapi.json", "route_not_found");
    }

    #[test]
    fn links_in_messages_answer_at_the_root_only() {
        check(&Method::GET, "/t/o/abc", "/t/o/{token} /t/o/abc [token=abc]");
        check(&Method::HEAD, "/t/c/abc", "/t/c/{token} /t/c/abc [token=abc]");
        check(&Method::POST, "/u/abc", "/u/{token} /u/abc [token=abc]");
        check(&Method::POST, "/t/c/abc", "allow GET, HEAD");
        check(&Method::PUT, "/u/abc", "allow GET, HEAD, POST");
        check(&Method::GET, "/v1/u/abc", "route_not_found");
        check(&Method::GET, "/u/", "route_not_found");
        check(&Method::GET, "/u/a/b", "route_not_found");
    }

    #[test]
    fn providers_call_the_root_with_post_and_whatsapp_asks_with_get() {
        check(
            &Method::POST,
            "/callbacks/sms/abc",
            "/callbacks/{channel}/{token} /callbacks/sms/abc [channel=sms,token=abc]",
        );
        check(&Method::GET, "/callbacks/sms/abc", "allow POST");
        for method in [Method::POST, Method::GET] {
            check(
                &method,
                "/callbacks/whatsapp/abc",
                "/callbacks/whatsapp/{token} /callbacks/whatsapp/abc [token=abc]",
            );
        }
        check(&Method::PUT, "/callbacks/whatsapp/abc", "allow GET, HEAD, POST");
        check(&Method::POST, "/v1/callbacks/sms/abc", "route_not_found");
        check(&Method::POST, "/callbacks/sms", "route_not_found");
    }

    #[test]
    fn send_calls_of_other_services_are_answered_at_the_root_only() {
        check(&Method::POST, "/emails", "/emails /emails []");
        check(&Method::POST, "/emails/batch", "/emails/batch /emails/batch []");
        check(&Method::POST, "/v3/mail/send", "/v3/mail/send /v3/mail/send []");
        check(&Method::GET, "/emails", "allow POST");
        check(&Method::POST, "/v1/emails", "route_not_found");
        check(&Method::GET, "/emails/abc", "route_not_found");
    }

    #[test]
    fn the_console_answers_at_the_root_where_there_is_one() {
        check(&Method::GET, "/console", "/console /console []");
        check(&Method::GET, "/console/", "/console /console/ []");
        check(&Method::HEAD, "/console/ab/lib/api.js", "/console /console/ab/lib/api.js [file=ab/lib/api.js]");
        check(&Method::POST, "/console", "allow GET, HEAD");
        check(&Method::GET, "/consoles", "route_not_found");
        check(&Method::GET, "/v1/console", "route_not_found");
        for path in ["/console", "/console/", "/console/a/b"] {
            assert!(matches!(Router::new(false).find(&Method::GET, path), Err(Error::RouteNotFound)), "{path}");
        }
    }

    #[test]
    fn files_are_sent_to_the_root() {
        check(&Method::PUT, "/uploads/abc", "/uploads/{token} /uploads/abc [token=abc]");
        check(&Method::GET, "/uploads/abc", "allow PUT");
        check(&Method::PUT, "/v1/uploads/abc", "route_not_found");
    }

    #[test]
    fn images_are_served_at_the_root() {
        check(&Method::GET, "/i/abc", "/i/{token} /i/abc [token=abc]");
        check(&Method::HEAD, "/i/abc", "/i/{token} /i/abc [token=abc]");
        check(&Method::PUT, "/i/abc", "allow GET, HEAD");
        check(&Method::GET, "/v1/i/abc", "route_not_found");
    }

    #[test]
    fn other_methods_learn_which_are_allowed() {
        check(&Method::DELETE, "/v1/workspaces", "allow GET, HEAD, POST");
        check(&Method::PUT, "/health", "allow GET, HEAD");
    }

    #[test]
    fn parameters_are_percent_decoded() {
        let path = "/v1/workspaces/a%20%C3%A4%2Fb";
        check(&Method::PATCH, path, "/workspaces/{workspace_id} /workspaces/a%20%C3%A4%2Fb [workspace_id=a ä/b]");
    }
}
