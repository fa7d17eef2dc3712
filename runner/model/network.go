package model

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
)

// Network classifies an error of the transport: no answer came at all.
func Network(err error) *Error {
	e := &Error{Kind: Retryable, Class: "connection", Err: fmt.Errorf("reach the server: %w", err), Hint: "is the server running, and is spec.baseURL right?"}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "proxyconnect" {
		e.Class, e.Hint = "proxy", "the proxy of HTTPS_PROXY or HTTP_PROXY cannot be reached"
		return e
	}
	if cert, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		e.Kind, e.Class = Unavailable, "certificate"
		e.Hint = "the server's certificate is not trusted: name the CA's file in SSL_CERT_FILE"
		if _, ok := errors.AsType[x509.HostnameError](cert.Err); ok {
			e.Hint = "the certificate is for another host: check spec.baseURL"
		}
		return e
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok || strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") {
		e.Kind, e.Class, e.Hint = Never, "protocol", "the server does not speak TLS: is spec.baseURL meant to begin with http://?"
		return e
	}
	// A name that does not exist is a typo, and trying again does not help; a resolver
	// that does not answer is another matter.
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
		e.Kind, e.Hint = Unavailable, "the host is not known here: check spec.baseURL if the Model has one, else the network"
		return e
	}
	// net/http has no type for an answer that is not HTTP.
	if strings.Contains(err.Error(), "malformed HTTP") || strings.Contains(err.Error(), "malformed MIME header") {
		e.Kind, e.Class, e.Hint = Never, "protocol", "the server does not speak HTTP: check spec.baseURL"
	}
	return e
}
