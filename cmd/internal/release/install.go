package main

import _ "embed"

// installer is install.sh, in which @VERSION@ stands for that of the release.
//
//go:embed install.sh
var installer string
