-- Everybody by what they are interested in, with what is known of them, in French.
-- XMark, Query 10, as SQL over the streams of the document. `--row-tag categorie` writes what XMark asks for.
-- The end of a person closes their interests (interest.person), and unique ids (person.id) purge those before. Who is
-- interested in a category is known when all people are.
-- Verdict, followed: refused, group_by never answers, since nothing closes category of interest.

CREATE TABLE person USING xmark OPTIONS (path '${XMARK}', stream 'person');
CREATE TABLE interest USING xmark OPTIONS (path '${XMARK}', stream 'interest');

SELECT id, personnes.personne
FROM (
  SELECT i.category AS id, sort_array(collect_set(named_struct('id', p.id, 'personne', named_struct(
      'statistiques', named_struct('sexe', p.gender, 'age', p.age, 'education', p.education, 'revenu', p.income),
      'coordonnees', named_struct('nom', p.name, 'rue', p.street, 'ville', p.city, 'pays', p.country,
        'reseau', named_struct('courrier', p.emailaddress, 'pagePerso', p.homepage)),
      'cartePaiement', p.creditcard)))) AS personnes
  FROM interest i JOIN person p ON p.id = i.person
  GROUP BY i.category
);
