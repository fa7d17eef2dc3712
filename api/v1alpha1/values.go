package v1alpha1

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Reference names another object of the same namespace.
type Reference struct {
	// Name of the object. Required.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
}

// ValueSource names where a secret value comes from. Values are never written
// into a manifest; they are resolved when a run starts and again when it is
// resumed.
type ValueSource struct {
	// ValueFrom names the place. Required: a literal value is refused.
	ValueFrom ValueFrom `json:"valueFrom"`
}

// ValueFrom is exactly one place of a value.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=1
type ValueFrom struct {
	// Env is the name of an environment variable of agentctl itself, for
	// example OPENAI_API_KEY. Where it is not set, the value that "agentctl auth
	// set" stored under the name is used.
	// +kubebuilder:validation:Pattern=`^[A-Za-z_][A-Za-z0-9_]*$`
	// +optional
	Env string `json:"env,omitempty"`
	// File is a path whose content, without a final newline, is the value. It
	// must not be readable by others (mode 0600). Relative to the manifest.
	// +kubebuilder:validation:MinLength=1
	// +optional
	File string `json:"file,omitempty"`
	// Exec is a command, as a list of arguments, whose standard output is the
	// value. It is started without a shell and must answer within 10 s.
	// +kubebuilder:validation:MinItems=1
	// +optional
	Exec []string `json:"exec,omitempty"`
	// SecretKeyRef is a key of a Kubernetes Secret. Not yet: it works on a cluster
	// only, and this version refuses it.
	// +optional
	SecretKeyRef *SecretKeyRef `json:"secretKeyRef,omitempty"`
}

// SecretKeyRef is a key of a Kubernetes Secret in the same namespace.
type SecretKeyRef struct {
	// Name of the Secret. Required.
	Name string `json:"name"`
	// Key inside the Secret. Required.
	Key string `json:"key"`
}

// EnvVar is an environment variable of a tool's process.
type EnvVar struct {
	// Name of the variable as the tool sees it. Required.
	// +kubebuilder:validation:Pattern=`^[A-Za-z_][A-Za-z0-9_]*$`
	Name string `json:"name"`
	// Value is a plain, public value. Exactly one of value, valueFrom and suppliedBy is
	// given.
	// +optional
	Value *string `json:"value,omitempty"`
	// ValueFrom is the source of a secret value.
	// +optional
	ValueFrom *ValueFrom `json:"valueFrom,omitempty"`
	// SuppliedBy is the Tool of the same agent whose results supply the value, with the
	// variable's name in its spec.supplies. Until a call of it has done so, calls of
	// this tool are refused. A program that stays is given the value with each call.
	// +optional
	SuppliedBy *Reference `json:"suppliedBy,omitempty"`
}

// Money is an amount in US dollars as a decimal string with at most six
// decimals, for example "2.00". Quote it: an unquoted number is refused.
// +kubebuilder:validation:Pattern=`^[0-9]{1,9}(\.[0-9]{1,6})?$`
type Money string

// Micros returns the amount in millionths of a dollar; an empty Money is 0.
func (m Money) Micros() (int64, error) {
	if m == "" {
		return 0, nil
	}
	whole, frac, _ := strings.Cut(string(m), ".")
	if len(whole) > 9 || len(frac) > 6 || whole == "" {
		return 0, fmt.Errorf("amount %q is not a decimal with at most six places", string(m))
	}
	n, err := strconv.ParseUint(whole+frac+strings.Repeat("0", 6-len(frac)), 10, 63)
	if err != nil {
		return 0, fmt.Errorf("amount %q is not a decimal with at most six places", string(m))
	}
	return int64(n), nil
}

// JSON is any JSON value, kept as it was written.
// +kubebuilder:validation:Type=""
type JSON struct {
	Raw json.RawMessage `json:"-"`
}

// MarshalJSON returns the value as it was written; an absent one is null.
func (j JSON) MarshalJSON() ([]byte, error) {
	if len(j.Raw) == 0 {
		return []byte("null"), nil
	}
	return j.Raw, nil
}

// UnmarshalJSON keeps the value; null is absent.
func (j *JSON) UnmarshalJSON(b []byte) error {
	if bytes.Equal(b, []byte("null")) {
		j.Raw = nil
		return nil
	}
	j.Raw = append(json.RawMessage(nil), b...)
	return nil
}
