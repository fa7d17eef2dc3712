package embedded

import (
	"runtime/debug"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apimachineryversion "k8s.io/apimachinery/pkg/version"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/compatibility"

	"agentctl.dev/agentctl/api/crds"
)

// listGroups serves to old clients what newer ones read from the aggregated
// discovery.
func listGroups(s *genericapiserver.GenericAPIServer) {
	version := metav1.GroupVersionForDiscovery{GroupVersion: crds.GroupVersion, Version: strings.TrimPrefix(crds.GroupVersion, group+"/")}
	s.DiscoveryGroupManager.AddGroup(metav1.APIGroup{Name: group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version})
}

// buildMetadata is a version as the metadata of another one, which takes letters,
// digits, points and hyphens.
func buildMetadata(version string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= '0' && r <= '9', r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r == '.', r == '-':
			return r
		}
		return '-'
	}, version), "-.")
}

// stamped sets which Kubernetes release the server is. Clients decide by it
// which features to use; a program that links the server's packages has only
// their module version.
type stamped struct {
	compatibility.EffectiveVersion
	own string // of this program, "" if it is not known
}

// Info returns the version that /version shows.
func (s stamped) Info() *apimachineryversion.Info {
	info := *s.EffectiveVersion.Info()
	info.GitVersion, info.GitCommit = "v"+s.BinaryVersion().String()+".0", ""
	if release := kubernetesRelease(); release != "" {
		info.GitVersion = release
	}
	if own := buildMetadata(s.own); own != "" {
		info.GitVersion += "+agentd." + own
	}
	return &info
}

// kubernetesRelease is v1.36.3 when this program links k8s.io/apiserver v0.36.3.
func kubernetesRelease() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, dep := range info.Deps {
		if release, ok := strings.CutPrefix(dep.Version, "v0."); ok && dep.Path == "k8s.io/apiserver" {
			return "v1." + release
		}
	}
	return ""
}
