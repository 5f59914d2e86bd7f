//! The certificate of the private servers.

use std::fs;
use std::path::Path;

use openssl::asn1::Asn1Time;
use openssl::bn::{BigNum, MsbOption};
use openssl::error::ErrorStack;
use openssl::hash::MessageDigest;
use openssl::pkey::{PKey, PKeyRef, Private};
use openssl::rsa::Rsa;
use openssl::x509::extension::{BasicConstraints, SubjectAlternativeName};
use openssl::x509::{X509, X509Builder, X509Name, X509NameBuilder};

use crate::{Error, Result};

/// File names of the authority, the server's certificate and its key.
pub(crate) const FILES: [&str; 3] = ["ca.pem", "server-cert.pem", "server-key.pem"];

/// RSA of 2048 bits and SHA-256: the largest common ground of yaSSL (5.7.22) and OpenSSL 3.
const KEY_BITS: u32 = 2048;
const DAYS: u32 = 3650;

/// Writes an authority and a server certificate for `localhost` and 127.0.0.1 into a directory.
pub(crate) fn write_certificate(dir: &Path) -> Result<()> {
    let authority_key = Rsa::generate(KEY_BITS)?;
    let authority_name = name("waggle test authority")?;
    let signer = PKey::from_rsa(authority_key)?;
    let mut builder = certificate(&authority_name, &authority_name, &signer)?;
    builder.append_extension(BasicConstraints::new().critical().ca().build()?)?;
    builder.sign(&signer, MessageDigest::sha256())?;
    let authority = builder.build();

    let key = Rsa::generate(KEY_BITS)?;
    let public = PKey::from_rsa(key.clone())?;
    let mut builder = certificate(&name("localhost")?, &authority_name, &public)?;
    let mut names = SubjectAlternativeName::new();
    let names = names.dns("localhost").ip("127.0.0.1");
    let names = names.build(&builder.x509v3_context(Some(&authority), None))?;
    builder.append_extension(names)?;
    builder.sign(&signer, MessageDigest::sha256())?;
    let server: X509 = builder.build();

    // `BEGIN RSA PRIVATE KEY` (PKCS#1): yaSSL does not read PKCS#8.
    let contents = [authority.to_pem()?, server.to_pem()?, key.private_key_to_pem()?];
    for (file, content) in FILES.into_iter().zip(contents) {
        let path = dir.join(file);
        fs::write(&path, content).map_err(Error::io("write", &path))?;
    }
    Ok(())
}

fn name(common: &str) -> std::result::Result<X509Name, ErrorStack> {
    let mut name = X509NameBuilder::new()?;
    name.append_entry_by_text("CN", common)?;
    Ok(name.build())
}

fn certificate(
    subject: &X509Name,
    issuer: &X509Name,
    key: &PKeyRef<Private>,
) -> std::result::Result<X509Builder, ErrorStack> {
    let mut serial = BigNum::new()?;
    serial.rand(63, MsbOption::MAYBE_ZERO, false)?;
    let mut builder = X509::builder()?;
    builder.set_version(2)?;
    builder.set_serial_number(serial.to_asn1_integer()?.as_ref())?;
    builder.set_subject_name(subject)?;
    builder.set_issuer_name(issuer)?;
    builder.set_pubkey(key)?;
    builder.set_not_before(Asn1Time::days_from_now(0)?.as_ref())?;
    builder.set_not_after(Asn1Time::days_from_now(DAYS)?.as_ref())?;
    Ok(builder)
}
