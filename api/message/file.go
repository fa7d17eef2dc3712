package message

// File is a file that is part of a message.
type File struct {
	Mime     string `json:"mime"`
	Filename string `json:"filename,omitempty"`
	// URL where the content is: data:, file:, blob: or mcp:.
	URL string `json:"url"`
	// Size of the content in bytes; 0 is not known.
	Size   int64       `json:"size,omitempty"`
	Source *FileSource `json:"source,omitempty"`
	// Origin of the content; absent in runs of earlier versions.
	Origin *Origin `json:"origin,omitempty"`
}

// FileSource says what a file shows.
type FileSource struct {
	// Type is file, symbol or resource.
	Type string `json:"type"`
	Path string `json:"path,omitempty"`
	// Name of a symbol or URI of a resource.
	Name string `json:"name,omitempty"`
	// FirstLine and LastLine of the range, counted from 1, the last one
	// included; 0 is the whole.
	FirstLine int `json:"firstLine,omitempty"`
	LastLine  int `json:"lastLine,omitempty"`
}
