// Package loop is the agent's life: ask the model, judge and run the calls it asks for, tell the journal, until there is an answer or a limit.
package loop
