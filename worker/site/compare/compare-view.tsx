export const CompareView = () => (
  <div class="empty">
    <h1>Compare</h1>
    <p class="quiet">One prompt, two models or two sets of parameters.</p>
  </div>
);
