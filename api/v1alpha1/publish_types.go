package v1alpha1

// PublicationType is what is written outside.
// +kubebuilder:validation:Enum=Comment;PullRequest;Webhook
type PublicationType string

// The types of a Publication.
const (
	// PublishComment is a comment on a pull request or an issue.
	PublishComment PublicationType = "Comment"
	// PublishPullRequest is a pull request with what the run has changed.
	PublishPullRequest PublicationType = "PullRequest"
	// PublishWebhook is a request with JSON to one URL.
	PublishWebhook PublicationType = "Webhook"
)

// Publication declares what a run may prepare for publication with the tool publish. The
// run itself sends nothing: "agentctl apply-changes RUN --publish" does, after its end.
// +kubebuilder:validation:XValidation:rule="self.type == 'Webhook' ? has(self.url) && !has(self.forge) : has(self.forge) && !has(self.url)",message="a Webhook has a url, the other types have a forge"
// +kubebuilder:validation:XValidation:rule="self.type != 'Comment' || !has(self.forge) || has(self.forge.number)",message="a Comment needs forge.number, for example ${inputs.number}",fieldPath=".forge",reason="FieldValueRequired"
// +kubebuilder:validation:XValidation:rule="self.type == 'Webhook' || has(self.credential)",message="a forge needs a credential",reason="FieldValueRequired"
type Publication struct {
	// Name by which the model, policies and results call it. Required. Example: review.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Type: a Comment on a pull request or an issue, a PullRequest with what the run has
	// changed, or a Webhook. Required.
	Type PublicationType `json:"type"`
	// Max bounds the items of one run.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=20
	// +optional
	Max int32 `json:"max,omitempty"`
	// MaxBytes bounds the text and the data of one item.
	// +kubebuilder:default=32768
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=60000
	// +optional
	MaxBytes int32 `json:"maxBytes,omitempty"`
	// Forge is where a Comment or a PullRequest is made. Required for these types.
	// +optional
	Forge *Forge `json:"forge,omitempty"`
	// URL to which a Webhook is sent, with POST: https, or http on this host. Required for
	// this type. Example: https://hooks.example.com/reviews.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	URL string `json:"url,omitempty"`
	// Credential is the token that the target is sent as "Authorization: Bearer". It is
	// read when the items are sent: the run never has it. Required for a forge.
	// +optional
	Credential *ValueSource `json:"credential,omitempty"`
}

// ForgeType is the API of a forge.
// +kubebuilder:validation:Enum=GitHub;GitLab
type ForgeType string

// The types of a Forge.
const (
	ForgeGitHub ForgeType = "GitHub"
	ForgeGitLab ForgeType = "GitLab"
)

// ForgeSubject is what a comment is on.
// +kubebuilder:validation:Enum=PullRequest;Issue
type ForgeSubject string

// The subjects of a Comment.
const (
	SubjectPullRequest ForgeSubject = "PullRequest"
	SubjectIssue       ForgeSubject = "Issue"
)

// Forge is a repository on a server for repositories. The model chooses nothing of it.
type Forge struct {
	// Type of its API: GitHub or GitLab. Required.
	Type ForgeType `json:"type"`
	// BaseURL of its REST API: https, or http on this host. Default:
	// https://api.github.com or https://gitlab.com/api/v4. No other server is contacted.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	BaseURL string `json:"baseURL,omitempty"`
	// Repository with its owner; it may name inputs. Required.
	// Example: acme/shop, or ${inputs.repository}.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Repository string `json:"repository"`
	// Subject of a Comment: a PullRequest (a merge request on GitLab) or an Issue.
	// +kubebuilder:default=PullRequest
	// +optional
	Subject ForgeSubject `json:"subject,omitempty"`
	// Number of the pull request or the issue of a Comment; it may name inputs. Required
	// for this type. Example: "${inputs.number}".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Number string `json:"number,omitempty"`
	// Base is the branch that a PullRequest is to be merged into.
	// +kubebuilder:default=main
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Base string `json:"base,omitempty"`
}
