//! The encodings of a file that a client accepts (RFC 9110 section 12.5.3).

use http::HeaderMap;
use http::header::ACCEPT_ENCODING;

/// Returns true if gzip is accepted. Without the header any encoding may be sent, but clients that omit it rarely
/// expect one.
pub(super) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let (mut gzip, mut any) = (None, None);
    for coding in values.flat_map(|text| text.split(',')) {
        let (name, parameters) = coding.split_once(';').unwrap_or((coding, ""));
        let is_taken = weight(parameters) > 0.0;
        match name.trim().to_ascii_lowercase().as_str() {
            // The second is an older name of the first.
            "gzip" | "x-gzip" => gzip = Some(is_taken),
            "*" => any = Some(is_taken),
            _ => {}
        }
    }
    gzip.or(any).unwrap_or(false)
}

/// The weight among the parameters of a coding: 1 if there is none, 0 if it cannot be read.
fn weight(parameters: &str) -> f32 {
    let mut pairs = parameters.split(';').filter_map(|pair| pair.split_once('='));
    pairs
        .find(|(name, _)| name.trim().eq_ignore_ascii_case("q"))
        .map_or(1.0, |(_, value)| value.trim().parse().unwrap_or(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(values: &[&'static str], expected: bool) {
        let headers: HeaderMap = values.iter().map(|value| (ACCEPT_ENCODING, value.parse().unwrap())).collect();
        assert_eq!(accepts_gzip(&headers), expected, "{values:?}");
    }

    #[test]
    fn gzip_is_taken_where_it_is_named_and_not_refused() {
        check(&[], false);
        check(&[""], false);
        check(&["gzip"], true);
        check(&["GZip ; Q=0.5"], true);
        check(&["gzip, deflate, br, zstd"], true);
        check(&["br", "x-gzip"], true);
        check(&["br;q=1.0, gzip;q=0.8, *;q=0.1"], true);
        check(&["*"], true);
        check(&["identity"], false);
        check(&["gzipped"], false);
    }

    #[test]
    fn a_weight_of_zero_refuses() {
        check(&["gzip;q=0"], false);
        check(&["gzip; q=0.000"], false);
        check(&["*;q=0"], false);
        check(&["gzip;q=0, *"], false);
        check(&["*;q=0, gzip"], true);
        check(&["gzip;q=no"], false);
        check(&["gzip;q=-1"], false);
        check(&["gzip;q=NaN"], false);
        check(&["gzip;level=9;q=0"], false);
    }
}
