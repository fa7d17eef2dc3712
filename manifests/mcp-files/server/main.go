// Command server is a small MCP server that reads, writes and deletes files of the folder it works in.
package main

import "os"

func main() { serve(os.Stdin, os.Stdout) }
