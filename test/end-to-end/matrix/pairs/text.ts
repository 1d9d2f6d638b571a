import type { AskedCase } from "./pair-case.ts";

/** Who says what, and whose instructions stand where. */
export const textCases: readonly AskedCase[] = [
  {
    what: "several turns of text",
    asks: {
      "openai-chat": {
        messages: [
          { role: "user", content: "Hi" },
          { role: "assistant", content: "Hello." },
          { role: "user", content: "Weather?" },
        ],
      },
      "anthropic-messages": {
        messages: [
          { role: "user", content: "Hi" },
          { role: "assistant", content: "Hello." },
          { role: "user", content: "Weather?" },
        ],
      },
      "openai-responses": {
        input: [
          { role: "user", content: "Hi" },
          { role: "assistant", content: "Hello." },
          { role: "user", content: "Weather?" },
        ],
      },
    },
    gets: {
      "openai-chat": {
        messages: [
          { role: "user", content: "Hi" },
          { role: "assistant", content: "Hello." },
          { role: "user", content: "Weather?" },
        ],
      },
      "anthropic-messages": {
        messages: [
          { role: "user", content: "Hi" },
          { role: "assistant", content: "Hello." },
          { role: "user", content: "Weather?" },
        ],
      },
      "openai-responses": {
        input: [
          { type: "message", role: "user", content: "Hi" },
          {
            type: "message",
            role: "assistant",
            content: [{ type: "output_text", text: "Hello." }],
          },
          { type: "message", role: "user", content: "Weather?" },
        ],
      },
      "google-generate": {
        contents: [
          { role: "user", parts: [{ text: "Hi" }] },
          { role: "model", parts: [{ text: "Hello." }] },
          { role: "user", parts: [{ text: "Weather?" }] },
        ],
      },
    },
  },
  {
    what: "instructions at the head and later on",
    asks: {
      "openai-chat": {
        messages: [
          { role: "system", content: "Be brief." },
          { role: "user", content: "Hi" },
          { role: "assistant", content: "Hello." },
          { role: "user", content: "Sing" },
          { role: "system", content: "Now rhyme." },
        ],
      },
      "anthropic-messages": {
        system: "Be brief.",
        messages: [
          { role: "user", content: "Hi" },
          { role: "assistant", content: "Hello." },
          { role: "user", content: "Sing" },
          { role: "system", content: "Now rhyme." },
        ],
      },
      "openai-responses": {
        instructions: "Be brief.",
        input: [
          { role: "user", content: "Hi" },
          { role: "assistant", content: "Hello." },
          { role: "user", content: "Sing" },
          { role: "developer", content: "Now rhyme." },
        ],
      },
    },
    gets: {
      "openai-chat": {
        messages: [
          { role: "system", content: "Be brief." },
          { role: "user", content: "Hi" },
          { role: "assistant", content: "Hello." },
          { role: "user", content: "Sing" },
          { role: "system", content: "Now rhyme." },
        ],
      },
      "anthropic-messages": {
        system: "Be brief.",
        messages: [
          { role: "user", content: "Hi" },
          { role: "assistant", content: "Hello." },
          {
            role: "user",
            content: [
              { type: "text", text: "Sing" },
              { type: "text", text: "<system-reminder>\nNow rhyme.\n</system-reminder>" },
            ],
          },
        ],
      },
      "openai-responses": {
        input: [
          { type: "message", role: "user", content: "Hi" },
          {
            type: "message",
            role: "assistant",
            content: [{ type: "output_text", text: "Hello." }],
          },
          { type: "message", role: "user", content: "Sing" },
          { type: "message", role: "system", content: "Now rhyme." },
        ],
        instructions: "Be brief.",
      },
      "google-generate": {
        contents: [
          { role: "user", parts: [{ text: "Hi" }] },
          { role: "model", parts: [{ text: "Hello." }] },
          {
            role: "user",
            parts: [
              { text: "Sing" },
              { text: "<system-reminder>\nNow rhyme.\n</system-reminder>" },
            ],
          },
        ],
        systemInstruction: { parts: [{ text: "Be brief." }] },
      },
    },
  },
];
