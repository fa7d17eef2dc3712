package artifact

import (
	"encoding/json"
	"runtime"

	"github.com/opencontainers/go-digest"
)

// manifest is what is read of the manifest of an artifact or image, or of an index.
type manifest struct {
	Layers    []descriptor `json:"layers"`
	Manifests []descriptor `json:"manifests"`
}

// descriptor names a blob.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      digest.Digest     `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations"`
	Platform    *struct {
		OS           string `json:"os"`
		Architecture string `json:"architecture"`
	} `json:"platform"`
}

// parse reads a manifest that is among the blobs.
func (b blobs) parse(d digest.Digest) (*manifest, error) {
	text, ok := b[d]
	if !ok {
		return nil, wrong("it has no manifest %s", d)
	}
	m := &manifest{}
	if err := json.Unmarshal(text, m); err != nil {
		return nil, wrong("its manifest is not JSON: %w", err)
	}
	switch {
	case len(m.Layers) > 0 && len(m.Manifests) > 0:
		return nil, wrong("its manifest has layers and manifests: it is either an index or not")
	case len(m.Layers) > maxLayers:
		return nil, wrong("it has more than %d layers", maxLayers)
	}
	for _, l := range append(m.Layers[:len(m.Layers):len(m.Layers)], m.Manifests...) {
		if err := l.Digest.Validate(); err != nil || l.Digest.Algorithm() != digest.SHA256 {
			return nil, wrong("its manifest names a blob %.80q, which is not a digest of the form sha256: and 64 hex digits", string(l.Digest))
		}
	}
	return m, nil
}

// manifest returns the manifest with the layers. Of an index, that is the one for this
// host; read is called to make it one of the blobs.
func (b blobs) manifest(top digest.Digest, read func(digest.Digest) error) (*manifest, error) {
	m, err := b.parse(top)
	if err != nil {
		return nil, err
	}
	if len(m.Manifests) > 0 {
		d, err := m.choose()
		if err != nil {
			return nil, err
		}
		if err := read(d); err != nil {
			return nil, err
		}
		if m, err = b.parse(d); err != nil {
			return nil, err
		}
		if len(m.Manifests) > 0 {
			return nil, wrong("its index names another index")
		}
	}
	if len(m.Layers) == 0 {
		return nil, wrong("it has no layers, and so no files")
	}
	return m, nil
}

// choose returns the digest of the image for this host, or of the only one.
func (m *manifest) choose() (digest.Digest, error) {
	var found []digest.Digest
	for _, d := range m.Manifests {
		if _, about := d.Annotations["vnd.docker.reference.type"]; about {
			continue // how an image was built, and no image
		}
		if d.Platform == nil || len(m.Manifests) == 1 || d.Platform.OS == "linux" && d.Platform.Architecture == runtime.GOARCH {
			found = append(found, d.Digest)
		}
	}
	if len(found) != 1 {
		return "", wrong("its index has %d images for linux/%s: name one of them by its own digest", len(found), runtime.GOARCH)
	}
	return found[0], nil
}
