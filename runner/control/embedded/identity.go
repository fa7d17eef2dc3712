package embedded

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// Identity is the holder of a token.
type Identity struct {
	// Name is what the audit log calls the holder. Required, unique.
	Name string `json:"name"`
	// Role is what the holder may do. Required.
	Role Role `json:"role"`
	// Runs are those a worker works on, as NAMESPACE/NAME. Only for that role.
	Runs []string `json:"runs,omitempty"`
	// Namespace is the only one in which the holder may do anything; "" is every one.
	Namespace string `json:"namespace,omitempty"`
	// Created is when the token was made.
	Created time.Time `json:"created"`
}

// bearer is a user, and by which token.
type bearer struct {
	*user.DefaultInfo
	sha256 string
}

// IdentityOf returns the identity of an authorized request.
func IdentityOf(ctx context.Context) (Identity, bool) {
	u, ok := request.UserFrom(ctx)
	if !ok {
		return Identity{}, false
	}
	role, _ := roleOf(u) // the server's own client has none
	return Identity{Name: u.GetName(), Role: role, Runs: u.GetExtra()[runsExtra]}, true
}

func (id Identity) user() *user.DefaultInfo {
	u := &user.DefaultInfo{Name: id.Name, Groups: []string{rolePrefix + string(id.Role), user.AllAuthenticated}}
	if len(id.Runs) > 0 {
		u.Extra = map[string][]string{runsExtra: id.Runs}
	}
	if id.Namespace != "" {
		u.Groups = append(u.Groups, namespacePrefix+id.Namespace)
	}
	return u
}

func (id Identity) check() error {
	if problems := validation.IsDNS1123Subdomain(id.Name); len(problems) > 0 {
		return fmt.Errorf("token %q: the name has to be lower case letters, digits, '-' and '.', and begin and end with a letter or digit", id.Name)
	}
	if id.Namespace != "" && (len(validation.IsDNS1123Label(id.Namespace)) > 0 || id.Role == RoleWorker) {
		return fmt.Errorf("token %q: the namespace %q has to be a DNS label, and a worker has none: its runs name theirs", id.Name, id.Namespace)
	}
	if !slices.Contains(Roles(), id.Role) {
		return fmt.Errorf("token %q: there is no role %q", id.Name, id.Role)
	}
	if (id.Role == RoleWorker) != (len(id.Runs) > 0) {
		return fmt.Errorf("token %q: a worker, and nobody else, names the runs it works on", id.Name)
	}
	for _, run := range id.Runs {
		namespace, name, ok := strings.Cut(run, "/")
		if !ok || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
			return fmt.Errorf("token %q: %q does not name a run, write NAMESPACE/NAME", id.Name, run)
		}
	}
	return nil
}
