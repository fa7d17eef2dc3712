package embedded

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	apiextv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// fieldManager owns the fields that this package applies.
const fieldManager = "agentd"

// applyDefinitions applies CustomResourceDefinitions and waits until their
// kinds are served. Manual changes are reverted; a definition that is up to
// date costs no write.
func applyDefinitions(ctx context.Context, loopback *rest.Config, texts [][]byte) error {
	client, err := clientset.NewForConfig(loopback)
	if err != nil {
		return fmt.Errorf("make a client for the definitions: %w", err)
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, text := range texts {
		g.Go(func() error {
			crd, err := applyDefinition(ctx, client, text)
			if err != nil {
				return err
			}
			return served(ctx, client, crd)
		})
	}
	return g.Wait()
}

func applyDefinition(ctx context.Context, client *clientset.Clientset, text []byte) (*apiextv1.CustomResourceDefinition, error) {
	body, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, fmt.Errorf("read a definition: %w", err)
	}
	var object struct{ Metadata struct{ Name string } }
	if err := yaml.Unmarshal(body, &object); err != nil {
		return nil, fmt.Errorf("read a definition: %w", err)
	}
	name, force := object.Metadata.Name, true
	crd, err := client.ApiextensionsV1().CustomResourceDefinitions().Patch(ctx, name, types.ApplyPatchType, body,
		metav1.PatchOptions{FieldManager: fieldManager, Force: &force})
	if err != nil {
		return nil, fmt.Errorf("apply definition %q: %w", name, err)
	}
	return crd, nil
}

// served waits until every version of a kind is established and can be listed.
// The first list of a kind makes the server fill a cache. Until that is done
// the server asks every client to retry after a second, so the wait is taken
// here.
func served(ctx context.Context, client *clientset.Clientset, crd *apiextv1.CustomResourceDefinition) error {
	for _, v := range crd.Spec.Versions {
		var last error
		path := "/apis/" + crd.Spec.Group + "/" + v.Name + "/" + crd.Spec.Names.Plural
		err := wait.PollUntilContextCancel(ctx, 2*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			// Without a limit, which would be answered past the cache.
			last = client.RESTClient().Get().AbsPath(path).Param("labelSelector", "agentctl.dev/none").MaxRetries(0).Do(ctx).Error()
			if apierrors.IsNotFound(last) || apierrors.IsServiceUnavailable(last) || apierrors.IsTooManyRequests(last) {
				return false, nil
			}
			return last == nil, last
		})
		if err != nil {
			return fmt.Errorf("wait for kind %q to be served: %w", crd.Spec.Names.Kind, errors.Join(err, last))
		}
	}
	return nil
}
