/** The thought of an agent's reply. */

import { Markdown } from "../components/Markdown";

export function Thought({ text }: { text: string }) {
  return (
    <div className="chat-thought">
      <Markdown text={text} />
    </div>
  );
}
