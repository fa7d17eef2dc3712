package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
)

// questions answers calls with which the model asks the person behind the run. A
// question is not an approval: its answer allows nothing.
func questions() HostTool { return HostTool{Tool: "question", Answer: askQuestions} }

// answered is a question and how it ended, as the metadata of the result has it.
type answered struct {
	Question string             `json:"question"`
	State    message.ReplyState `json:"state"`
	// Answers are the text of the person, or the options that were chosen.
	Answers []string `json:"answers,omitempty"`
	By      string   `json:"by,omitempty"`
	Reason  string   `json:"reason,omitempty"`
}

// askQuestions asks one question after the other. Where one finds no person, the
// others would find none either and are not asked.
func askQuestions(ctx context.Context, h Host, call message.ToolCall) (*message.ToolResult, error) {
	var args struct {
		Questions []struct {
			Question string   `json:"question"`
			Options  []string `json:"options"`
			Multiple bool     `json:"multiple"`
		} `json:"questions"`
	}
	if err := json.Unmarshal(call.Args, &args); err != nil {
		return nil, err
	}
	var all []answered
	for i, q := range args.Questions {
		reply, err := h.Ask(ctx, message.Inquiry{Text: q.Question, Options: q.Options, Multiple: q.Multiple && len(q.Options) > 0})
		if ctx.Err() != nil || reason.Of(err) != reason.Internal && err != nil {
			return nil, err
		}
		if err != nil {
			return h.Result(Reply{Output: strings.TrimLeft(said(all)+fmt.Sprintf("\nquestion %d was not asked: %v", i+1, err), "\n"), Failed: true, Code: message.CodeTool})
		}
		a := answered{Question: q.Question, State: reply.State, By: reply.By, Reason: reply.Reason}
		if reply.State == message.ReplyAnswered && len(q.Options) > 0 {
			a.Answers = strings.Split(reply.Answer, "\n")
		} else if reply.State == message.ReplyAnswered {
			a.Answers = []string{reply.Answer}
		}
		all = append(all, a)
		if reply.State == message.ReplyUnanswered || reply.State == message.ReplyExpired {
			break
		}
	}
	metadata, err := json.Marshal(struct {
		Answers []answered `json:"answers"`
	}{all})
	if err != nil {
		return nil, err
	}
	return h.Result(Reply{Output: said(all), Title: titleOf(all), Metadata: metadata})
}

// said is what the model reads.
func said(all []answered) string {
	var b strings.Builder
	for _, a := range all {
		fmt.Fprintf(&b, "question: %s\n", a.Question)
		switch a.State {
		case message.ReplyAnswered:
			fmt.Fprintf(&b, "answer: %s\n", strings.Join(a.Answers, ", "))
		case message.ReplyRefused:
			fmt.Fprintf(&b, "no answer: the person refused to answer%s\n", because(a.Reason))
		case message.ReplyExpired:
			b.WriteString("no answer came in time. Go on with what you know, and name in your final answer what is left to decide.\n")
		case message.ReplyUnanswered:
			fmt.Fprintf(&b, "no answer: %s. Go on with what you know, and name in your final answer what is left to decide.\n", a.Reason)
		}
	}
	return b.String()
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// titleOf is the newest answer.
func titleOf(all []answered) string {
	if len(all) == 0 {
		return ""
	}
	last := all[len(all)-1]
	if last.State != message.ReplyAnswered {
		return string(last.State)
	}
	return strings.Join(last.Answers, ", ")
}
