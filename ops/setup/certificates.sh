# Sourced by what installs. Behind a proxy that ends TLS, connections are signed by the company's own authority: the
# system's certificates know it, those that pip, uv and requests bring along do not. SSL_CERT_FILE names others.

export UV_SYSTEM_CERTS="${UV_SYSTEM_CERTS:-1}"
if [ -z "${PIP_CERT:-}${REQUESTS_CA_BUNDLE:-}${CURL_CA_BUNDLE:-}" ]; then
    # Debian, Red Hat, SUSE, Alpine and macOS.
    for bundle in "${SSL_CERT_FILE:-}" /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt \
        /etc/ssl/ca-bundle.pem /etc/ssl/cert.pem; do
        if [ -n "$bundle" ] && [ -r "$bundle" ]; then
            export PIP_CERT="$bundle" REQUESTS_CA_BUNDLE="$bundle"
            break
        fi
    done
fi

about_certificates() {
    printf '%s\n' "If a certificate was not trusted: packages are fetched with the certificates of this system" \
        "(${PIP_CERT:-${REQUESTS_CA_BUNDLE:-none were found}}). Behind a company's TLS proxy, have its authority added" \
        "to them, or name a file that contains it: SSL_CERT_FILE=/path/to/authority.pem make setup" >&2
}
