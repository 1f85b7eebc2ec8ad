//! Derive of `Setters`: `new` and chained setters.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Attribute, Data, DeriveInput, Error, Field, Fields, GenericArgument, Ident, PathArguments, Result, Type};

pub(crate) fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(&input.ident, "only structs are put together"));
    };
    let Fields::Named(fields) = &data.fields else {
        return Err(Error::new_spanned(&input.ident, "only named members have setters"));
    };
    let has_defaults = says(&input.attrs, "setters", "default");
    let (mut parameters, mut members, mut setters) = (TokenStream::new(), TokenStream::new(), TokenStream::new());
    for field in &fields.named {
        let Some(member) = &field.ident else { continue };
        let (wrapper, inner) = wrapped(&field.ty);
        let (taken, value) = argument(inner, member);
        if !has_defaults && is_required(field, wrapper) {
            let value = wrap(wrapper, &value);
            parameters.extend(quote!(#member: #taken,));
            members.extend(quote!(#member: #value,));
        } else {
            members.extend(quote!(#member: ::core::default::Default::default(),));
            setters.extend(setter(field, member, wrapper, &taken, &value));
        }
    }
    let name = &input.ident;
    let (generics, arguments, bounds) = input.generics.split_for_impl();
    let new = (!has_defaults).then(|| {
        quote! {
            /// Creates the value from its required members.
            #[allow(clippy::new_without_default)]
            pub fn new(#parameters) -> Self {
                Self { #members }
            }
        }
    });
    Ok(quote! {
        #[automatically_derived]
        impl #generics #name #arguments #bounds {
            #new
            #setters
        }
    })
}

/// Type around a member that may be left out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wrapper {
    Option,
    Patch,
    Replace,
}

fn setter(
    field: &Field,
    member: &Ident,
    wrapper: Option<Wrapper>,
    taken: &TokenStream,
    value: &TokenStream,
) -> TokenStream {
    let docs = field.attrs.iter().filter(|attribute| attribute.path().is_ident("doc"));
    let set = wrap(wrapper, value);
    let clear = (wrapper == Some(Wrapper::Patch)).then(|| {
        let clear = format_ident!("clear_{member}");
        let text = format!("Clears `{member}`.");
        quote! {
            #[doc = #text]
            #[must_use]
            pub fn #clear(mut self) -> Self {
                self.#member = ::messaging_core::patch::Patch::Null;
                self
            }
        }
    });
    quote! {
        #(#docs)*
        #[must_use]
        pub fn #member(mut self, #member: #taken) -> Self {
            self.#member = #set;
            self
        }
        #clear
    }
}

fn wrap(wrapper: Option<Wrapper>, value: &TokenStream) -> TokenStream {
    match wrapper {
        Some(Wrapper::Option) => quote!(::core::option::Option::Some(#value)),
        Some(Wrapper::Patch) => quote!(::messaging_core::patch::Patch::Set(#value)),
        Some(Wrapper::Replace) => quote!(::messaging_core::patch::Replace::with(#value)),
        None => value.clone(),
    }
}

/// Returns the parameter type of a member's setter, and the expression that converts the parameter.
fn argument(member: &Type, name: &Ident) -> (TokenStream, TokenStream) {
    if let Some(item) = inside(member, "Vec") {
        let items = quote!(impl ::core::iter::IntoIterator<Item = impl ::core::convert::Into<#item>>);
        return (items, quote!(#name.into_iter().map(::core::convert::Into::into).collect()));
    }
    let is_primitive = matches!(member, Type::Path(path) if path.path.get_ident().is_some_and(|name| {
        name.to_string().starts_with(|letter: char| letter.is_ascii_lowercase())
    }));
    if is_primitive {
        // A literal has no type of its own from which it could be converted.
        return (quote!(#member), quote!(#name));
    }
    (quote!(impl ::core::convert::Into<#member>), quote!(#name.into()))
}

/// Returns the wrapper and the type within an `Option`, a `Patch` or a `Replace`, or else the type itself.
fn wrapped(member: &Type) -> (Option<Wrapper>, &Type) {
    let known = [("Option", Wrapper::Option), ("Patch", Wrapper::Patch), ("Replace", Wrapper::Replace)];
    known.into_iter().find_map(|(name, wrapper)| Some((Some(wrapper), inside(member, name)?))).unwrap_or((None, member))
}

/// Returns the `T` of `Name<T>`.
fn inside<'t>(member: &'t Type, name: &str) -> Option<&'t Type> {
    let Type::Path(path) = member else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == name)?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first()? {
        GenericArgument::Type(inner) => Some(inner),
        _ => None,
    }
}

/// True if `new` takes the member as a parameter.
fn is_required(field: &Field, wrapper: Option<Wrapper>) -> bool {
    match wrapper {
        None => !says(&field.attrs, "serde", "default"),
        Some(_) => says(&field.attrs, "validate", "required"),
    }
}

/// Returns true if an attribute of this name has a word among its arguments.
fn says(attributes: &[Attribute], name: &str, word: &str) -> bool {
    attributes.iter().filter(|attribute| attribute.path().is_ident(name)).any(|attribute| {
        let mut found = false;
        // Other arguments are for other macros to judge.
        let _ = attribute.parse_nested_meta(|meta| {
            found |= meta.path.is_ident(word);
            if meta.input.peek(syn::Token![=]) {
                meta.value()?.parse::<syn::Expr>()?;
            } else if meta.input.peek(syn::token::Paren) {
                meta.parse_nested_meta(|inner| inner.value()?.parse::<syn::Expr>().map(|_| ()))?;
            }
            Ok(())
        });
        found
    })
}
