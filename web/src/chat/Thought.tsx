/** What the agent thought when it replied. */

import { Markdown } from "../components/Markdown";

export function Thought({ text }: { text: string }) {
  return (
    <div className="chat-thought">
      <Markdown text={text} />
    </div>
  );
}
