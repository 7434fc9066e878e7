import { allShortcuts } from "../keyboard";
import { Dialog } from "./Dialog";

export function Shortcuts({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose}>
      <table className="shortcuts">
        <tbody>
          {allShortcuts().map(({ keys, label }) => (
            <tr key={keys + label}>
              <td>
                <kbd>{keys}</kbd>
              </td>
              <td>{label}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Dialog>
  );
}
