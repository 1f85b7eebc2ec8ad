//! Derive of `Validate`: checks the rules of members.

use proc_macro2::TokenStream;
use quote::quote;
use syn::meta::ParseNestedMeta;
use syn::{Data, DeriveInput, Error, Expr, Field, Fields, Ident, Result};

pub(crate) fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(&input.ident, "only structs have members to be checked"));
    };
    let mut checks = TokenStream::new();
    if let Fields::Named(fields) = &data.fields {
        for field in &fields.named {
            checks.extend(field_checks(field)?);
        }
    }
    let name = &input.ident;
    let (generics, arguments, bounds) = input.generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #generics ::messaging_core::validate::Validate for #name #arguments #bounds {
            fn broken_member(&self) -> ::core::option::Option<&'static str> {
                #checks
                ::core::option::Option::None
            }
        }
    })
}

/// Returns one `if` for each rule of a member.
fn field_checks(field: &Field) -> Result<TokenStream> {
    let Some(member) = &field.ident else { return Ok(TokenStream::new()) };
    let mut rules = Vec::new();
    for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("validate")) {
        attribute.parse_nested_meta(|meta| {
            rules.push(rule(member, &meta)?);
            Ok(())
        })?;
    }
    let name = member.to_string();
    let name = name.strip_prefix("r#").unwrap_or(&name);
    Ok(quote! {
        #(if !#rules { return ::core::option::Option::Some(#name); })*
    })
}

/// Returns the expression that is true if a rule is kept.
fn rule(member: &Ident, meta: &ParseNestedMeta<'_>) -> Result<TokenStream> {
    let path = quote!(::messaging_core::validate);
    let is = |name| meta.path.is_ident(name);
    if is("length") || is("range") {
        let (min, max) = bounds(meta)?;
        let function = &meta.path;
        Ok(quote!(#path::#function(&self.#member, #min, #max)))
    } else if is("required") {
        Ok(quote!(self.#member.is_some()))
    } else if is("nested") {
        Ok(quote!(#path::Validate::is_valid(&self.#member)))
    } else {
        Err(meta.error("known are length, range, required and nested"))
    }
}

/// Returns `min` and `max` of `length(min = …, max = …)` or `range(…)`, as options.
fn bounds(meta: &ParseNestedMeta<'_>) -> Result<(TokenStream, TokenStream)> {
    let none = quote!(::core::option::Option::None);
    let (mut min, mut max) = (none.clone(), none);
    meta.parse_nested_meta(|bound| {
        let is_min = bound.path.is_ident("min");
        if !is_min && !bound.path.is_ident("max") {
            return Err(bound.error("known are min and max"));
        }
        let value: Expr = bound.value()?.parse()?;
        *(if is_min { &mut min } else { &mut max }) = quote!(::core::option::Option::Some(#value));
        Ok(())
    })?;
    Ok((min, max))
}
