import { highlight } from "./highlight";
import type { Source } from "./highlighter";

self.onmessage = ({ data: { text, language, path } }: MessageEvent<Source>) => {
  self.postMessage(highlight(text, language, path));
};
