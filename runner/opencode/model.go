package opencode

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
)

// models are the Models that agents name, by what they are made of.
type models struct {
	objects []map[string]any
	names   []string
	by      map[string]string
}

// maker is a provider of OpenCode, as a Model writes it.
type maker struct{ provider, env, url string }

func makers() map[string]maker {
	return map[string]maker{
		"anthropic":  {"anthropic", "ANTHROPIC_API_KEY", ""},
		"openai":     {"openai", "OPENAI_API_KEY", ""},
		"google":     {"gemini", "GEMINI_API_KEY", ""},
		"openrouter": {"openai", "OPENROUTER_API_KEY", "https://openrouter.ai/api/v1"},
		"groq":       {"openai", "GROQ_API_KEY", "https://api.groq.com/openai/v1"},
		"deepseek":   {"openai", "DEEPSEEK_API_KEY", "https://api.deepseek.com/v1"},
		"mistral":    {"openai", "MISTRAL_API_KEY", "https://api.mistral.ai/v1"},
		"xai":        {"openai", "XAI_API_KEY", "https://api.x.ai/v1"},
	}
}

// model returns the name of the Model for provider/model with parameters. One that cannot
// be written is a Model that answers with what has to be done.
func (c *conversion) model(at, id string, parameters map[string]any) string {
	options, _ := json.Marshal(parameters) // numbers as texts only
	key := id + " " + string(options)
	if name, ok := c.models.by[key]; ok {
		return name
	}
	spec := c.modelSpec(at, id)
	if spec == nil {
		if len(parameters) > 0 {
			return c.model(at, id, nil)
		}
		spec = map[string]any{"provider": "scripted", "scripted": map[string]any{"steps": []any{
			map[string]any{"say": "There is no model yet: write one into models.yaml."},
		}}}
	} else if len(parameters) > 0 {
		spec["parameters"] = parameters
	}
	_, base, _ := strings.Cut(id, "/")
	if base == "" {
		base = "default"
	}
	name := slug(base, c.models.names)
	c.models.names = append(c.models.names, name)
	c.models.objects = append(c.models.objects, manifest("Model", name, spec))
	if c.models.by == nil {
		c.models.by = map[string]string{}
	}
	c.models.by[key] = name
	return name
}

// modelSpec returns nil for a model that cannot be written.
func (c *conversion) modelSpec(at, id string) map[string]any {
	if id == "" {
		c.leave("/model", "the file names no model: write one into models.yaml")
		return nil
	}
	provider, model, ok := strings.Cut(id, "/")
	if _, filled := substituted(id); !ok || filled || model == "" {
		c.leave(at, "is no provider/model: write one into models.yaml")
		return nil
	}
	m, usual := makers()[provider]
	place := "/provider/" + escape(provider)
	var own *value
	if all := c.root.get("provider"); all != nil {
		own = all.get(provider)
	}
	var window int64
	hasKey := usual
	if own != nil {
		if o := own.get("options"); o != nil {
			for i := range o.members {
				switch v := &o.members[i]; v.key {
				case "baseURL":
					m.url, _ = words(&v.value)
					u, err := url.Parse(m.url)
					if _, filled := substituted(m.url); filled || err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Scheme != "http" && u.Scheme != "https" {
						c.leave(place+"/options/baseURL", "is no address without a secret: write the model into models.yaml")
						return nil
					}
					if !usual {
						m.provider = "openai"
					}
					c.carry(place+"/options/baseURL", "baseURL "+m.url, "")
				case "apiKey":
					s, _ := words(&v.value)
					if env, _ := substituted(s); env != "" {
						m.env, hasKey = env, true
						c.carry(place+"/options/apiKey", "key from "+env, "")
					} else {
						c.leave(place+"/options/apiKey", "a key that stands in the file: agentctl auth set keeps it")
					}
				default:
					c.leave(place+"/options/"+escape(v.key), "has no counterpart in a Model")
				}
			}
		}
		if npm, ok := words(own.get("npm")); ok && !usual && npm != "@ai-sdk/openai-compatible" && npm != "@ai-sdk/openai" {
			c.leave(place+"/npm", "a wire format that agentctl does not have: write the model into models.yaml")
			return nil
		}
		window = contextWindow(own, model)
	}
	if m.provider == "" {
		c.leave(at, "the provider "+provider+" is not known here and has no baseURL: write the model into models.yaml")
		return nil
	}
	spec := map[string]any{"provider": m.provider, "model": model}
	if m.url != "" {
		spec["baseURL"] = m.url
	}
	if hasKey {
		spec["apiKey"] = map[string]any{"valueFrom": map[string]any{"env": m.env}}
	}
	if window > 0 {
		spec["contextWindow"] = window
	}
	c.carry(at, "Model of "+m.provider+", "+model, "")
	return spec
}

func contextWindow(provider *value, model string) int64 {
	v := provider
	for _, key := range []string{"models", model, "limit", "context"} {
		if v = v.get(key); v == nil {
			return 0
		}
	}
	n, err := strconv.ParseInt(v.text, 10, 64)
	if err != nil || n < 1 {
		return 0
	}
	return n
}
