import { describe, expect, it } from "vitest";
import { serviceOf } from "../../src/models/service";

const MODELS = [
  { name: "local:small", ready: true, about: "fetched" },
  { name: "openai:NAME", ready: false, about: "no key: set OPENAI_API_KEY" },
  { name: "google:NAME", ready: true, about: "key in GEMINI_API_KEY" },
];

describe("serviceOf", () => {
  it.each([
    ["openai:gpt-5", "openai", true],
    ["google:gemini-2.5-pro", "google", false],
  ])("finds the provider of %s", (model, provider, missing) => {
    expect(serviceOf(model, "", MODELS)).toMatchObject({ provider, baseUrl: "", missing });
  });

  it("is the server for every model of a base URL", () => {
    for (const model of ["", "mine", "openai:gpt-5"])
      expect(serviceOf(model, "http://h/v1", MODELS)).toMatchObject({ provider: "", baseUrl: "http://h/v1" });
  });

  it.each(["local:small", "scripted:/a"])("is none for %s, which needs no key", (model) => {
    expect(serviceOf(model, "http://h/v1", MODELS)).toBeNull();
  });

  it("is none for an unknown name", () => expect(serviceOf("openai", "", MODELS)).toBeNull());
});
