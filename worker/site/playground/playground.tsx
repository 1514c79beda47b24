export const Playground = () => (
  <div class="empty">
    <h1>Playground</h1>
    <p class="quiet">Write the beginning of a text. The model continues it.</p>
  </div>
);
