export const TreeView = () => (
  <div class="empty">
    <h1>Tree</h1>
    <p class="quiet">Branches of completions, from one prompt.</p>
  </div>
);
